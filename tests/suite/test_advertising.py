"""Advertising: the paper's model on clicks in Criteo's layout, generated clicks, and messages for wrong files."""

import json
import math
import os
import pathlib
import random
import subprocess

import pytest
from paper_data import write_criteo

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
# Categories of the 26 fields of Criteo's Kaggle set.
CRITEO = (1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652,
          2173, 4, 7046547, 18, 15, 286181, 105, 142572)  # fmt: skip


def parameters(rows, numbers=13, width=16, bottom=(512, 256, 64), top=(512, 256, 1)):
    def perceptron(widths):
        return sum(a * b + b for a, b in zip(widths, widths[1:]))

    vectors = len(rows) + 1
    products = width + vectors * (vectors - 1) // 2
    return sum(rows) * width + perceptron((numbers, *bottom, width)) + perceptron((products, *top))


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", "advertising", "--data", data, "--threads", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def record(done):
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def test_the_formula_gives_the_published_size():
    assert parameters(CRITEO) == 540_677_217


def test_paper_scale(tmp_path):
    write_criteo(tmp_path, 70)
    run_record = record(run(tmp_path, "--scale", "paper", "--most-steps", "2", "--batch", "8", "--json"))
    lines = (tmp_path / "criteo/train.txt").read_text().splitlines()[:60]
    rows = [len({line.split("\t")[14 + field] for line in lines}) + 1 for field in range(26)]
    assert run_record["parameters"] == parameters(rows)
    assert run_record["samples"] == 60
    assert 0 <= run_record["quality"] <= 1
    assert run_record["target"] is None


def test_tables_can_be_capped(tmp_path):
    write_criteo(tmp_path, 70)
    run_record = record(run(tmp_path, "--scale", "paper", "--most-steps", "1", "--batch", "8", "--table-rows", "2", "--json"))
    assert run_record["parameters"] == parameters([2] * 26)
    assert run_record["settings"]["table-rows"] == "2"


def test_generated_clicks_have_a_known_bound(tmp_path):
    run_record = record(run(tmp_path, "--most-steps", "25", "--frozen", "--json"))
    bound = run_record["figures"]["AUC of the true probabilities"]
    assert 0.8 < bound < 0.85
    assert 0.65 < run_record["baseline"] < bound - 0.05
    assert 0.4 < run_record["quality"] < 0.6
    assert run_record["figures"]["accuracy of the most frequent answer"] == pytest.approx(0.7, abs=0.05)
    # Initial weights are those of the authors: logits are not 0, so the loss is above that of guessing.
    assert math.log(2) < run_record["curve"][0]["loss"] < 1.5


def write_caravan(data, lines):
    """Customers in the format of the CoIL Challenge 2000; those with a large second number have a policy."""
    (data / "caravan").mkdir(parents=True)
    draw = random.Random(2)
    with open(data / "caravan/ticdata2000.txt", "w") as file:
        for _ in range(lines):
            fields = [draw.randint(0, 9) for _ in range(85)]
            fields[0], fields[4], fields[9] = draw.randint(1, 41), draw.randint(1, 10), 3
            print(*fields, int(fields[1] > 6), sep="\t", file=file)


def test_policies_are_learned(tmp_path):
    write_caravan(tmp_path, 1000)
    done = run(tmp_path, "--clicks", "caravan", "--most-steps", "200", "--json")
    run_record = record(done)
    assert done.returncode == 0, "without a target none is missed"
    assert run_record["samples"] == 800 and run_record["data_set"] == "caravan"
    assert run_record["settings"]["clicks"] == "caravan" and run_record["target"] is None
    assert run_record["parameters"] == parameters([41, 10], numbers=83, width=8, bottom=(32,), top=(32, 16, 1))
    assert run_record["baseline"] > 0.9 and run_record["quality"] > 0.8
    assert "AUC of the true probabilities" not in run_record["figures"]


@pytest.mark.parametrize(
    "field, value, said",
    [
        (0, "42", "ticdata2000.txt:3: found '42"),
        (0, "0", "expected 1 to 41 as number 1"),
        (4, "11", "expected 1 to 10 as number 5"),
        (85, "2", "86 whole numbers between tabs, the last of them 0 or 1"),
        (7, "x", "86 whole numbers"),
        (7, "1\t1", "86 whole numbers"),
    ],
)
def test_wrong_customers_are_named(tmp_path, field, value, said):
    write_caravan(tmp_path, 20)
    path = tmp_path / "caravan/ticdata2000.txt"
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    lines[2][field] = value
    path.write_text("\n".join("\t".join(line) for line in lines) + "\n")
    done = run(tmp_path, "--clicks", "caravan")
    assert done.returncode == 3 and said in done.stderr, done.stderr


def test_caravan_is_one_data_set_of_one_task(tmp_path):
    assert run(tmp_path, "--clicks", "caravan").returncode == 4
    done = run(tmp_path, "--clicks", "caravan", "--scale", "paper")
    assert done.returncode == 2 and "--clicks is for advertising alone" in done.stderr
    write_caravan(tmp_path, 4)
    done = run(tmp_path, "--clicks", "caravan")
    assert done.returncode == 3 and "lines: found 4, expected at least 5" in done.stderr


@pytest.mark.parametrize(
    "line, said",
    [
        ("1\t2\t3", "train.txt:3: found '1"),
        ("2" + 39 * "\t", "expected a label (0 or 1)"),
        ("0\tx" + 38 * "\t", "13 numbers and 26 categories"),
    ],
)
def test_wrong_lines_are_named(tmp_path, line, said):
    write_criteo(tmp_path, 20)
    path = tmp_path / "criteo/train.txt"
    lines = path.read_text().splitlines()
    lines[2] = line
    path.write_text("\n".join(lines) + "\n")
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


def test_too_few_lines(tmp_path):
    write_criteo(tmp_path, 5)
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "lines: found 5, expected at least 7" in done.stderr


def test_missing_data(tmp_path):
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "criteo/train.txt: missing" in done.stderr
