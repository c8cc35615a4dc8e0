"""`etude suite calibrate --variation`: runs that are evaluated often enough to measure the variation of epochs to the target."""

import json
import os
import subprocess

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = os.environ["ETUDE_SUITE_DATA"]


def calibrate(folder, *words, code=0):
    words = (*words, "-o", folder, "--data", DATA, "--threads", 1)
    done = subprocess.run([ETUDE, "suite", "calibrate", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def test_variation(tmp_path):
    done = calibrate(tmp_path / "out", "advertising", "--variation", 3)
    found = json.loads((tmp_path / "out/variation.json").read_text())
    assert found["format"] == "etude-suite-calibration"
    (task,) = found["tasks"]
    assert task["id"] == "advertising" and task["evaluate_every"] == 25 and "fitted" not in task
    assert [run["seed"] for run in task["repeated"]] == [1, 2, 3]
    for run in task["repeated"]:
        assert run["steps_to_target"] % 25 == 0
        assert run["epochs_to_target"] == pytest.approx(run["steps_to_target"] * task["batch"] / task["samples"])
    assert "Variation of the epochs to the target" in done.stdout and "advertising" in done.stdout
    runs = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/runs").iterdir()}
    assert len(runs) == 3

    # Other tasks of the file remain, in AIBench's order.
    path = tmp_path / "out/variation.json"
    other = {"id": "language-modelling", "scale": "smoke", "target": 0.3, "repeated": []}
    path.write_text(json.dumps(found | {"tasks": [other, *found["tasks"]]}))
    # More seeds go on; the same evaluations are required.
    calibrate(tmp_path / "out", "advertising", "--variation", 4)
    assert {path: path.stat().st_mtime_ns for path in runs} == runs
    task, last = json.loads(path.read_text())["tasks"]
    assert len(task["repeated"]) == 4 and last == other
    path.write_text("{}")
    assert "variation.json" in calibrate(tmp_path / "out", "advertising", "--variation", 4, code=3).stderr
    done = calibrate(tmp_path / "out", "advertising", "--variation", 4, "--evaluate-every", 5, code=2)
    assert "--evaluate-every" in done.stderr


def test_evaluations_are_frequent(tmp_path):
    done = calibrate(tmp_path / "out", "spatial-transformer", "--variation", 2, "--most-steps", 50, code=1)
    (task,) = json.loads((tmp_path / "out/variation.json").read_text())["tasks"]
    assert task["evaluate_every"] == 25  # instead of 100
    assert [run["epochs_to_target"] for run in task["repeated"]] == [None, None]
    assert done.stdout.splitlines()[-1].split()[:3] == ["spatial-transformer", "2", "2"]


def test_refused(tmp_path):
    done = calibrate(tmp_path / "out", "advertising", "--variation", 2, "--seeds", 2, code=2)
    assert "--variation cannot be combined with --seeds" in done.stderr
    done = calibrate(tmp_path / "out", "advertising", "--variation", 2, "--scale", "paper", code=2)
    assert "found no target" in done.stderr
