"""`etude compare --run`: original and replay in turn. Tests check which figures were measured, but never their
durations."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from forked_python import END_OF_RANK, LIGHT

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")

PROGRAM = LIGHT + """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("out", flush=True)
for step in range(int(sys.argv[1])):
    # Of four steps the fourth has another shape.
    batch = 7 if "--mixed" in sys.argv and step % 4 == 3 else 5
    optimizer.zero_grad()
    nn.functional.mse_loss(model(torch.randn(batch, 16)), torch.randn(batch, 4)).backward()
    optimizer.step()
    if step == 20: print("step 20", flush=True)
print("trained", flush=True)
"""

JOB = LIGHT + """
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.randn(5, 8)).sum().backward()
    optimizer.step()
""" + END_OF_RANK
LAUNCHER = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


@pytest.fixture(autouse=True)
def leaves_nothing(tmp_path, monkeypatch):
    """Checks that no temporary folder and no process of the test remains."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    until(lambda: not list((tmp_path / "tmp").glob("etude-pace-*")))
    until(lambda: not processes_in(tmp_path))


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def processes_in(folder):
    """Returns command lines of processes that work in the folder."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                found.append((process / "cmdline").read_bytes())
        except OSError:
            pass
    return [line for line in found if line]


RECORDED = {}  # captures of programs, by their options


def record(tmp_path, *words, source=PROGRAM, launcher=(), options=()):
    """Returns a capture of the program, which is `program.py`. It is recorded once for all tests."""
    (tmp_path / "program.py").write_text(source)
    how = (words, source, tuple(launcher), tuple(options))
    if how not in RECORDED:
        counts = ["--warmup", "2", "--steps", "3"]
        command = [sys.executable, *launcher, "program.py", *words]
        done = subprocess.run(
            [ETUDE, "record", "-q", "-o", "job", *counts, *options, "--", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        RECORDED[how] = {path.name: path.read_bytes() for path in (tmp_path / "job").iterdir()}
    else:
        (tmp_path / "job").mkdir()
        for name, data in RECORDED[how].items():
            (tmp_path / "job" / name).write_bytes(data)
    return tmp_path / "job"


def compare(tmp_path, *options, steps=None, launcher=(), **more):
    command = ["--", sys.executable, *launcher, "program.py", *map(str, steps)] if steps else []
    line = [ETUDE, "compare", "job", "--run", "--warmup", "2", "--starts", "1"]
    line += [*map(str, options), *command]
    return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120, **more)


def compared(tmp_path, *options, **more):
    done = compare(tmp_path, "--json", *options, **more)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert result == json.loads((tmp_path / f"job/compare.{result['rank']}.json").read_text())
    assert done.returncode == (0 if result["all_met"] else 1)
    return result


def metric(result, name):
    (found,) = [row for row in result["metrics"] if row["name"] == name]
    return found


@pytest.mark.parametrize("recorder", ["observers", "native"])
def test_pairs_and_their_verdicts(tmp_path, recorder):
    job = record(tmp_path, "40", options=["--recorder", recorder])
    names = {path.name for path in job.iterdir()}
    assert ("capture.0.etude" in names) == (recorder == "native")
    result = compared(tmp_path, "--pairs", 12, "--bar", "cpu_time=100000%", steps=[5000])
    assert result["format"] == "etude-compare-run" and result["version"] == 1
    assert result["pairs"] == {"wanted": 12, "measured": 12} and result["ended"] is None
    assert len(result["samples"]) == 12
    assert {sample["first"] for sample in result["samples"]} == {"original", "replay"}
    for sample in result["samples"]:
        for side in ("original", "replay"):
            assert sample[side]["cpu_time"] > 0 and sample[side]["wall_time"] > 0
            assert sample[side]["average_resident"] > 1 << 20
    assert result["threads"] == 1
    assert result["replay"]["operators_replayed"] == result["replay"]["operators"] > 0
    assert result["noise"]["repeats"] > 0 and result["noise"]["cpu"]["p90_ns"] > 0
    cpu = metric(result, "cpu_time")
    assert cpu["verdict"] == "met" and cpu["bar"] == 1000 and cpu["pairs"] == 12
    assert cpu["original"]["low"] <= cpu["original"]["median"] <= cpu["original"]["high"]
    assert metric(result, "voluntary_switches")["verdict"] is None
    # The original's memory includes Python, but the growth above its level before the first step does not.
    whole, growth = metric(result, "peak_resident"), metric(result, "peak_memory")
    if "original" in whole:
        assert growth["original"]["median"] < whole["original"]["median"] / 2
    counters = metric(result, "instructions")
    assert "original" in counters or counters["not_available"]
    assert {path.name for path in job.iterdir()} == names | {"compare.0.json"}


def test_what_modules_do_while_a_model_is_made_is_no_growth(tmp_path):
    """Some programs, such as those with spectral_norm, call a module while the model is made. The level is that of
    the first step."""
    source = PROGRAM.replace("optimizer = torch", "model(torch.ones(1, 16))\nballast = torch.ones(1 << 25)\noptimizer = torch")
    record(tmp_path, "40", source=source)
    growth = metric(compared(tmp_path, "--pairs", 6, steps=[5000]), "peak_memory")
    if "original" in growth:
        assert growth["original"]["median"] < 1 << 26  # of the 128 MiB of the ballast


def test_a_result_that_cannot_be_kept_is_shown(tmp_path):
    (record(tmp_path, "40") / "compare.0.json/in the way").mkdir(parents=True)
    done = compare(tmp_path, "--json", "--pairs", 6, steps=[5000])
    assert done.returncode in (0, 1) and json.loads(done.stdout)["pairs"]["measured"] == 6
    assert "the result is lost" in done.stderr and "compare.0.json" in done.stderr


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_written_benchmark_in_place_of_the_replay(tmp_path, ranks):
    if ranks == 1:
        record(tmp_path, "40")
        more, launcher = [], ()
    else:
        record(tmp_path, "40", source=JOB, launcher=LAUNCHER)
        more, launcher = ["--ranks", "all"], LAUNCHER
    line = [ETUDE, "benchmark", "-q", "job", "-o", "bench", "--iterations", "1", *more]
    subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    benchmark = ["--benchmark", "bench/benchmark.py"]
    done = compare(tmp_path, "--json", "--pairs", 10, "--bar", "cpu_time=100000%", *benchmark, steps=[5000], launcher=launcher)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert result["benchmark"] == "bench/benchmark.py" and result["pairs"]["measured"] == 10
    assert metric(result, "cpu_time")["verdict"] == "met"
    if ranks == 1:
        sizes = metric(result, "peak_resident")
        assert "replay" not in sizes or sizes["replay"]["median"] > 1 << 24
    assert not (tmp_path / "job/compare.0.json").exists()  # the file belongs to the replay
    done = compare(tmp_path, "--benchmark", "bench/nothing.py", steps=[5000])
    assert done.returncode == 2 and "expected FOLDER/benchmark.py" in done.stderr


def test_gpus_are_looked_at_where_it_is_asked_for(tmp_path, monkeypatch):
    record(tmp_path, "40")
    names = {"gpu_energy", "gpu_power", "gpu_utilisation", "gpu_memory_utilisation", "gpu_memory"}
    result = compared(tmp_path, "--pairs", 6, steps=[5000])
    assert not names & {row["name"] for row in result["metrics"]}
    # A library that replaces NVML: two GPUs of 150 W.
    monkeypatch.setenv("LD_LIBRARY_PATH", os.path.join(os.environ["ETUDE_BIN"], "../tests/nvml"))
    result = compared(tmp_path, "--pairs", 6, "--experimental", steps=[5000])
    for side in ("original", "replay"):
        assert metric(result, "gpu_power")[side]["median"] == 300
        assert metric(result, "gpu_utilisation")[side]["median"] == 0.8
        assert metric(result, "gpu_memory")[side]["median"] == 8192
    assert "at least 0.5 s" in metric(result, "gpu_energy")["not_available"]


def test_same_pairs_same_order(tmp_path):
    record(tmp_path, "40")
    orders = []
    for number, seed in enumerate((1, 1, 2)):
        files = [f"--certificate={number}.{kind}" for kind in ("json", "html")]
        files += ["--keep-paths"] if number == 2 else []
        result = compared(tmp_path, "--pairs", 10, "--seed", seed, *files, steps=[5000])
        orders.append([sample["first"] for sample in result["samples"]])
        check_certificate(tmp_path, f"{number}.json", seed, result)
        page = (tmp_path / f"{number}.html").read_text()
        read_again(tmp_path, f"{number}.json", "-o", "again.html")
        assert (tmp_path / "again.html").read_text() == page
        assert page.startswith("<!doctype html>") and (sys.executable in page) == (number == 2)
    assert orders[0] == orders[1] != orders[2]
    # One benchmark, measured twice.
    both = json.loads(read_again(tmp_path, "0.json", "2.json", "--json").stdout)
    assert both["one_benchmark"] and both["first"]["again"] != both["second"]["again"]
    cpu = metric({"metrics": both["ratios"]}, "cpu_time")
    assert cpu["pairs"] == 10 and cpu["original"]["ratio"] > 0 and cpu["verdict"]


def read_again(tmp_path, *words):
    line = [ETUDE, "compare", "--certificate", *words]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1) and done.stderr == "", done.stderr
    return done


def check_certificate(tmp_path, name, seed, result):
    """Checks the results of a run of PROGRAM: the comparison and its context."""
    certificate = json.loads((tmp_path / name).read_text())
    assert read_again(tmp_path, name, "--json").stdout == (tmp_path / name).read_text()
    kept = "--keep-paths" in certificate["again"]
    python = sys.executable if kept else "…/" + pathlib.Path(sys.executable).name
    assert python in certificate["again"] and str(tmp_path) not in json.dumps(certificate)
    comparison = certificate["comparison"]
    assert {**comparison, "command": 0} == {**result, "command": 0}
    assert comparison["command"] == [python, "program.py", "5000"]
    assert certificate["again"].startswith(f"etude compare job --run --pairs 10 --starts 1 --warmup 2 --seed {seed} ")
    assert certificate["again"].endswith(" program.py 5000")
    recording = json.loads((tmp_path / "job/job.json").read_text())
    assert certificate["benchmark"]["recording"] == recording["job"]
    assert certificate["benchmark"]["steps_seen"] >= certificate["benchmark"]["steps_alike"] > 0
    machine, replay = comparison["machine"], comparison["replay"]
    assert machine["cpu"] == recording["machine"]["cpu"] and machine["gpus"] == []
    assert comparison["versions"]["torch"] == recording["versions"]["torch"]
    assert comparison["environment"]["OMP_NUM_THREADS"] == "1"
    assert comparison["gaps"] == "recorded" and comparison["measured"].endswith("Z")
    assert replay["device"] == "cpu" and replay["same_kernels"] == 1
    (kind,) = replay["step_kinds"]
    assert kind["steps"] == 1 and kind["replayed"]
    done = read_again(tmp_path, name)
    assert "fidelity certificate" in done.stdout and "CPU time" in done.stdout


def test_table_for_people(tmp_path):
    record(tmp_path, "40")
    done = compare(tmp_path, "--pairs", 10, steps=[5000])
    assert "10 pairs of steps of the original and the replay" in done.stdout
    for title in ("CPU time", "wall time", "page faults", "machine noise"):
        assert title in done.stdout
    # The program's own output is not the result. The program was stopped before its last line.
    assert "out\n" in done.stderr and "out\n" not in done.stdout
    assert "trained" not in done.stderr


def test_steps_of_other_signatures_do_not_count(tmp_path):
    record(tmp_path, "40", "--mixed")
    result = compared(tmp_path, "--pairs", 24, "--lead", 0, steps=[5000, "--mixed"])
    assert result["pairs"]["measured"] == 24
    # One pair runs uncounted before the first: 24 pairs and one, in steps of three and one.
    assert result["original"]["steps_of_other_signatures"] in (8, 9)
    # The measured step has the recorded signature, whichever steps precede it.
    result = compared(tmp_path, "--pairs", 12, "--lead", 3, steps=[5000, "--mixed"])
    assert result["pairs"]["measured"] == 12
    assert result["original"]["steps_of_other_signatures"] >= 13


def test_program_without_a_recorded_step_left(tmp_path):
    record(tmp_path, "40")
    (tmp_path / "program.py").write_text(PROGRAM.replace("16", "24"))
    kept = tmp_path / "job" / "compare.0.json"
    kept.write_text("{}")
    page = tmp_path / "certificate.json"
    done = compare(tmp_path, "--pairs", 10, "--certificate", page, steps=[30])
    assert done.returncode == 3
    assert "none of 28 steps of the program has the recorded signature" in done.stderr
    assert "expected 'SGD; Sequential f32[5,16]', found 'SGD; Sequential f32[5,24]'" in done.stderr
    assert kept.read_text() == "{}" and not page.exists()


def test_recorded_command_runs_where_it_was_recorded(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    line = [ETUDE, "record", "-q", "-o", "job", "--warmup", "2", "--steps", "3", "--", sys.executable, "program.py", "20"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "job/job.json").read_text())
    assert len(document["mark"]) == 64
    done = compare(tmp_path, "--lead", 0, "--pairs", 10)
    assert done.returncode in (0, 1), done.stderr
    assert f"running the command in job.json: {sys.executable} program.py 20\n" in done.stderr
    document["command"][-1] = "21"
    (tmp_path / "job/job.json").write_text(json.dumps(document))
    done = compare(tmp_path, "--lead", 0, "--pairs", 10)
    assert done.returncode == 3 and "did not record" in done.stderr and done.stdout == ""


def test_program_that_ends_early(tmp_path):
    record(tmp_path, "20")
    # Without a command it runs as recorded, here or for another test. Of 20 steps two warm up, and one pair does not
    # count.
    result = compared(tmp_path, "--lead", 0, "--trust")
    assert result["pairs"] == {"wanted": 30, "measured": 17}
    assert result["ended"] == "the program ended after 17 of 30 pairs"
    # Two turns of two steps each, and one that has begun.
    result = compared(tmp_path, "--lead", 1, steps=[7])
    assert result["pairs"]["measured"] == 1
    assert result["ended"].endswith("--lead 0 reduces the steps per pair")
    result = compared(tmp_path, "--lead", 0, steps=[8])
    assert result["ended"].startswith("the program ended after 5 of 30 pairs, and a verdict requires at least 10")
    verdicts = {row["verdict"] for row in result["metrics"]}
    assert verdicts == {"undetermined", None}


def test_several_starts_share_the_pairs(tmp_path):
    record(tmp_path, "20")
    result = compared(tmp_path, "--pairs", 10, "--starts", 3, "--lead", 0, steps=[9])
    assert result["starts"] == 3 and result["ended"] is None
    assert [sample["start"] for sample in result["samples"]] == [0] * 4 + [1] * 3 + [2] * 3


def test_program_that_may_finish(tmp_path):
    record(tmp_path, "40")
    done = compare(tmp_path, "--pairs", 10, "--finish", steps=[100])
    assert done.returncode in (0, 1) and "trained" in done.stderr


def test_program_that_does_not_leave(tmp_path):
    stubborn = PROGRAM.replace("optimizer.step()", "\n".join(
        ["try:", "        optimizer.step()", "    except BaseException:", "        time.sleep(1000)"]
    ))
    record(tmp_path, "40", source=stubborn)
    assert compared(tmp_path, "--pairs", 10, steps=[5000])["pairs"]["measured"] == 10


@pytest.mark.parametrize(
    "source, steps, why",
    [
        ("raise SystemExit(3)", 1, "failed (exit code 3) before"),
        ("print(1)", 1, "did not import torch"),
        (PROGRAM, 2, "ended after 2 steps"),
    ],
)
def test_program_without_steps(tmp_path, source, steps, why):
    record(tmp_path, "40")
    (tmp_path / "program.py").write_text(source)
    done = compare(tmp_path, "--warmup", 5, steps=[steps])
    assert done.returncode == 3 and why in done.stderr, done.stderr
    assert not (tmp_path / "job/compare.0.json").exists()


def test_program_that_breaks_down(tmp_path):
    record(tmp_path, "40")
    (tmp_path / "program.py").write_text(
        PROGRAM.replace("    optimizer.zero_grad()", "    optimizer.zero_grad(); 1 / (step - 15)")
    )
    result = compared(tmp_path, "--lead", 0, steps=[100])
    assert result["ended"] == "the program ended after 12 of 30 pairs (exit code 1)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind(tmp_path, number):
    record(tmp_path, "40")
    line = [ETUDE, "compare", "job", "--run", "--pairs", "100000", "--"]
    with subprocess.Popen(
        [*line, sys.executable, "program.py", "100000000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        until(lambda: any(b"--paced" in line for line in processes_in(tmp_path)))
        process.send_signal(number)
        code = process.wait(timeout=30)
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    assert not (tmp_path / "job/compare.0.json").exists()


def test_replay_that_dies(tmp_path):
    record(tmp_path, "40")
    line = [ETUDE, "compare", "job", "--run", "--pairs", "100000", "--"]
    with subprocess.Popen(
        [*line, sys.executable, "program.py", "100000000"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # The program takes turns with the replay, which has run some steps by then.
        assert any("step 20" in line for line in process.stderr)
        replays = [path for path in pathlib.Path("/proc").glob("[0-9]*") if is_replay(path, tmp_path)]
        names = [path.name for path in replays]
        # It may have a child that runs a step.
        (replay,) = [path.name for path in replays if parent_of(path) not in names]
        os.kill(int(replay), signal.SIGKILL)
        said = process.stderr.read()
    assert process.returncode == 70 and "the replay " in said, said


def parent_of(process):
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return None


def is_replay(process, folder):
    try:
        line = (process / "cmdline").read_bytes()
        return b"--paced" in line and os.readlink(process / "cwd") == str(folder)
    except OSError:
        return False


def test_explicit_marks(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    before = "import torch, etude; recording = etude.record('job', warmup=2, steps=3); recording.__enter__()"
    source = LIGHT + before + PROGRAM.replace("optimizer.step()", "optimizer.step(); recording.step()")
    (tmp_path / "program.py").write_text(source)
    done = subprocess.run([sys.executable, "program.py", "20"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    job = json.loads((tmp_path / "job/job.json").read_text())
    assert job["ranks"]["0"]["step_kind"] == "explicit"
    assert compared(tmp_path, "--pairs", 10, steps=[100])["pairs"]["measured"] == 10


def test_ranks_run_their_steps_together(tmp_path):
    record(tmp_path, "20", source=JOB, launcher=LAUNCHER)
    result = compared(tmp_path, "--rank", 1, "--pairs", 10, steps=[10000], launcher=LAUNCHER)
    assert result["rank"] == 1 and result["world_size"] == 2
    assert result["replay"]["same_kernels"] > 0.5
    assert result["pairs"]["measured"] == 10
    (tmp_path / "program.py").write_text(PROGRAM)
    done = compare(tmp_path, steps=[100])
    assert done.returncode == 3 and "found a program with 1 rank, expected 2 as recorded" in done.stderr
    for trace in (*tmp_path.glob("**/*.1.json*"), tmp_path / "job/capture.1.etude"):
        trace.unlink()
    (tmp_path / "program.py").write_text("raise SystemExit('has run')\n")
    done = compare(tmp_path, steps=[100])
    assert done.returncode == 3 and "missing trace of rank 1" in done.stderr and "has run" not in done.stderr
