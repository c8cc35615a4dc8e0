"""Measured operators of recorded jobs: `etude calibrate --operators`, `whatif --measure`, and tables of their times."""

import csv
import json
import os
import pathlib
import subprocess
import sys

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
START_RANKS = pathlib.Path(__file__).parents[1] / "start_ranks.py"
TRANSFORMER = pathlib.Path(__file__).parent / "transformer_program.py"
NETWORK = ("--network", "Ring(1):1GB/s,1us")


def etude(*words, code=0):
    done = subprocess.run([ETUDE, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def told(*words, code=0):
    return json.loads(etude(*words, "--json", code=code).stdout)


def calibrate(job, table, *options):
    """Measures operators. Noise of the machine must not matter: hence --force."""
    return told("calibrate", "--operators", job, "-o", table, "--force", "--rounds", 9, *options)


def rows(table):
    with open(table, newline="") as file:
        return {(row["operator"], row["arguments"]): row for row in csv.DictReader(file)}


def scaled(table, to, factor):
    """Writes the table of a machine whose operators take `factor` times as long."""
    with open(table, newline="") as file, open(to, "w", newline="") as out:
        reader = csv.DictReader(file)
        writer = csv.DictWriter(out, reader.fieldnames, lineterminator="\n")
        writer.writeheader()
        for row in reader:
            writer.writerow(row | {"time_ns": float(row["time_ns"]) * factor, "processor": "other", "state": "measured"})
    return to


def step(job, *options):
    return told("simulate", job, *NETWORK, *options)["step_ns"]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Recordings of a transformer with two batches."""
    folder = tmp_path_factory.mktemp("jobs")
    for batch in (2, 4):
        program = (sys.executable, TRANSFORMER, 2, batch)
        etude("record", "-o", folder / str(batch), "--warmup", 2, "--steps", 3, "--", *program)
    return folder


@pytest.fixture(scope="module")
def table(jobs, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "operators.csv"
    found = calibrate(jobs / "2", path)
    assert found["measured"] == len(rows(path)) > 30 and found["kept"] == found["refused"] == 0
    return path


def test_table_has_the_operators_of_the_job(table):
    found = rows(table)
    product = found["aten::linear", "float32[2,16,32],float32[64,32],float32[64]"]
    assert product["device"] == "cpu" and product["threads"] == "1" and product["measured"] == "in step"
    assert int(product["calls"]) >= 7 and float(product["time_ns"]) > 0
    assert any(name == "aten::embedding" and arguments.startswith("float32[100,32],int64[2,16]") for name, arguments in found)


def test_only_missing_operators_are_measured(jobs, table, tmp_path):
    before = table.read_text()
    found = calibrate(jobs / "2", table)
    assert found["measured"] == 0 and found["kept"] == len(rows(table)) and table.read_text() == before
    lines = before.splitlines(keepends=True)
    copy = tmp_path / "some.csv"
    copy.write_text("".join(lines[:1] + lines[6:]))
    found = calibrate(jobs / "2", copy)
    assert found["measured"] == 5 and rows(copy).keys() == rows(table).keys()
    # The operators of parameters are those of the other batch.
    found = calibrate(jobs / "4", copy)
    assert found["kept"] > 5 and found["measured"] > 20


def test_operators_can_be_repeated_alone(jobs, tmp_path):
    path = tmp_path / "alone.csv"
    calibrate(jobs / "2", path, "--in", "isolation")
    assert {row["measured"] for row in rows(path).values()} == {"in isolation"} and len(rows(path)) > 30
    both = etude("calibrate", "--operators", jobs / "2", "-o", path, code=3).stderr
    assert "the table describes another machine: measured: found 'in isolation', expected 'in step'" in both


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_operators_of_processes_that_run_at_once(jobs, table, tmp_path):
    path = tmp_path / "shared.csv"
    found = calibrate(jobs / "2", path, "--at-once", 2)
    assert found["measured"] == len(rows(path)) > 30 and found["refused"] == 0
    assert {row["measured"] for row in rows(path).values()} == {"in step, 2 at once"}
    assert calibrate(jobs / "2", path, "--at-once", 2)["kept"] == len(rows(path))
    shared = ("--operators", path, "--recorded-operators", table)
    (change,) = told("whatif", jobs / "2", "-o", tmp_path / "edited", *shared)["edits"]
    assert change["operators"]["measured"] > 30 or any(row["state"] == "noisy" for row in rows(path).values())
    assert step(tmp_path / "edited") == step(jobs / "2", *shared)
    both = etude("calibrate", "--operators", jobs / "2", "-o", path, code=3).stderr
    assert "measured: found 'in step, 2 at once', expected 'in step'" in both
    many = etude("calibrate", "--operators", jobs / "2", "-o", tmp_path / "many.csv", "--at-once", 1000, code=4).stderr
    assert "--at-once: found 1,000 processes of 1 thread, expected at most as many threads as the" in many
    assert not (tmp_path / "many.csv").exists()
    etude("calibrate", "--operators", jobs / "2", "--at-once", 2, "--in", "isolation", code=2)


def test_edited_operators_are_measured(jobs, tmp_path):
    edits = (jobs / "2", "--second", jobs / "4", "--sizes", "2,4,64")
    kept = ("--measure", "--operators", tmp_path / "kept.csv")
    (change,) = told("whatif", *edits, "-o", tmp_path / "measured", *kept)["edits"]
    counts = change["operators"]
    table = rows(tmp_path / "kept.csv")
    is_noisy = any(row["state"] == "noisy" for row in table.values())
    assert counts["measured"] > 50 and (counts["without_ratio"] == 0 or is_noisy)
    assert change["certainty"] == ("modelled" if counts["not_measured"] else "measured")
    # Thirty-two times the batch takes longer; how much longer depends on the machine.
    assert is_noisy or step(tmp_path / "measured") > step(jobs / "2")
    product = "aten::linear", "float32[{},16,32],float32[64,32],float32[64]"
    small, large = (table[product[0], product[1].format(batch)] for batch in (2, 64))
    assert "noisy" in (small["state"], large["state"]) or float(large["time_ns"]) > float(small["time_ns"])
    # A second call takes them from the table, with and without measurement; noisy ones would be measured again.
    before = (tmp_path / "kept.csv").read_text().replace(",noisy", ",measured")
    (tmp_path / "kept.csv").write_text(before)
    steps = set() if is_noisy else {step(tmp_path / "measured")}
    for words in (kept, kept[1:]):
        (again,) = told("whatif", *edits, "-o", tmp_path / f"again{len(words)}", *words)["edits"]
        assert again["operators"]["measured"] >= counts["measured"]
        steps.add(step(tmp_path / f"again{len(words)}"))
    assert len(steps) == 1 and (tmp_path / "kept.csv").read_text() == before


def test_tables_of_another_machine(jobs, table, tmp_path):
    slow, fast = (scaled(table, tmp_path / f"{factor}.csv", factor) for factor in (10, 0.1))
    own = ("--recorded-operators", table)
    assert step(jobs / "2", "--operators", slow) > 2 * step(jobs / "2", "--operators", fast)
    recorded = step(jobs / "2")
    assert step(jobs / "2", "--operators", slow, *own) > recorded > step(jobs / "2", "--operators", fast, *own)
    same = step(jobs / "2", "--operators", table, *own)
    assert abs(same / recorded - 1) < 0.01
    (change,) = told("whatif", jobs / "2", "-o", tmp_path / "slow", "--operators", slow, *own)["edits"]
    assert change["operators"]["measured"] > 50
    assert step(tmp_path / "slow") == step(jobs / "2", "--operators", slow, *own)


def test_ranks_that_communicate(tmp_path):
    program = (sys.executable, "-E", START_RANKS, 2, pathlib.Path(__file__).parent / "ddp_program.py")
    etude("record", "-o", tmp_path / "job", "--warmup", 2, "--steps", 3, "--", *program)
    found = calibrate(tmp_path / "job", tmp_path / "operators.csv")
    assert found["measured"] == len(rows(tmp_path / "operators.csv")) > 10
    assert not any(name.startswith("c10d::") for name, _ in rows(tmp_path / "operators.csv"))
    assert calibrate(tmp_path / "job", tmp_path / "operators.csv")["measured"] == 0


def test_bad_tables_name_the_line(jobs, table, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text(table.read_text().replace(",in step,", ",somewhere,", 1))
    for words in (("whatif", jobs / "2", "-o", tmp_path / "out"), ("simulate", jobs / "2", *NETWORK)):
        error = etude(*words, "--operators", bad, code=3).stderr
        assert "bad.csv:2: found 'somewhere', expected 'in step', 'in isolation' or one of" in error
    assert "bad.csv:2:" in etude("calibrate", "--operators", jobs / "2", "-o", bad, code=3).stderr
    other = scaled(table, tmp_path / "other.csv", 1)
    edits = (jobs / "2", "--second", jobs / "4", "--sizes", "2,4,8", "-o", tmp_path / "out")
    error = etude("whatif", *edits, "--measure", "--operators", other, code=3).stderr
    assert "other.csv: the table describes another machine: processor: found 'other'" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words, error", [
    (("whatif", "--measure", "--dp", 2), "--measure requires other sizes (--sizes, --batch, …) or --tp"),
    (("whatif", "--recorded-operators", "t.csv", "--dp", 2), "--recorded-operators requires --operators"),
    (("calibrate", "--operators", "--ranks", 4), "cannot be combined with --operators"),
    (("calibrate", "--operators", "--ranks", 2), "cannot be combined with --operators"),
    (("calibrate", "--operators", "--rounds", 6), "--rounds: found 6, expected at least 7 with --operators"),
])  # fmt: skip
def test_options_that_require_others(jobs, tmp_path, words, error):
    command, *options = words
    if command == "whatif":
        command = ("whatif", jobs / "2", "-o", tmp_path / "out", *options)
    else:
        command = ("calibrate", options[0], jobs / "2", *options[1:])
    assert error in etude(*command, code=2).stderr
