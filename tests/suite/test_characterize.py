"""`etude suite characterize`: figures of tasks from timed steps, a recorded step and training runs."""

import csv
import json
import os
import subprocess

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = os.environ["ETUDE_SUITE_DATA"]


def characterize(folder, *words, code=0, data=DATA):
    words = (*words, "-o", folder, "--data", data, "--warmup", "1", "--iterations", "2")
    done = subprocess.run([ETUDE, "suite", "characterize", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def test_figures_of_a_task(tmp_path):
    done = characterize(tmp_path / "out", "spatial-transformer", "--seeds", 1, "--most-steps", 20, "--evaluate-every", 10)
    assert "spatial-transformer, seed 1: missed the target" in done.stderr
    found = json.loads((tmp_path / "out/characterization.json").read_text())
    assert found["format"] == "etude-suite-characterization" and found["scale"] == "smoke" and found["threads"] == 1
    assert found["peaks"]["flop_per_s"] > 1e8 and found["peaks"]["bytes_per_s"] > 1e8
    (task,) = found["tasks"]
    assert task["parameters"] == 27360 and task["blocks"] == ["localization network", "spatial transformer"]
    assert {"convolution", "linear", "grid sampling", "maximum pooling"} <= set(task["layers"])
    # A forward pass takes 0.776 million multiply-accumulates a digit; a backward pass at most twice as many.
    of_digit = task["step"]["flop"] / task["batch"]
    assert 2 * 2 * 0.776e6 < of_digit < 1.2 * 6 * 0.776e6
    spots = task["hot_spots"]
    assert sum(spots["categories"].values()) == pytest.approx(1)
    assert sum(one["share"] for one in spots["operators"]) == pytest.approx(1)
    assert sum(one["count"] for one in spots["operators"]) == task["step"]["operators"]
    assert 1 <= spots["half"] <= spots["most"] <= len(spots["operators"])
    assert spots["categories"]["convolution"] > 0.1
    assert 0 < task["step"]["tensor_bytes"] < task["peak_bytes"]
    (run,) = task["runs"]
    assert not run["reached"] and run["steps"] == 20 and run["epochs"] == pytest.approx(run["steps"] * task["batch"] / task["samples"])
    assert (task["counters"] is None) == (task["why_no_counters"] != "")
    parallel = task["parallel"]
    if os.cpu_count() > 1:
        expected = parallel["one_thread_seconds"] / parallel["seconds"] / parallel["threads"]
        assert parallel["efficiency"] == pytest.approx(expected)
    with open(tmp_path / "out/steps.csv") as file:
        (row,) = csv.DictReader(file)
    assert float(row["flop"]) == task["step"]["flop"]
    page = (tmp_path / "out/characterization.html").read_text()
    assert "Roofline" in page and "spatial-transformer" in page
    # The captures are ordinary ones.
    done = subprocess.run([ETUDE, "validate", tmp_path / "out/captures/spatial-transformer"], capture_output=True)
    assert done.returncode == 0


def test_what_exists_is_not_repeated(tmp_path):
    words = ("advertising", "--seeds", 0, "--threads", 1)
    characterize(tmp_path / "out", *words)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.json") if path.parent != tmp_path / "out"}
    assert len(files) == 2  # a run and a capture
    first = json.loads((tmp_path / "out/characterization.json").read_text())
    characterize(tmp_path / "out", *words)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    again = json.loads((tmp_path / "out/characterization.json").read_text())
    assert again["tasks"] == first["tasks"] and first["tasks"][0]["parallel"] is None
    done = characterize(tmp_path / "out", *words, "--batch", 64, code=2)
    assert "expected --batch 64" in done.stderr or "without --batch 64" in done.stderr, done.stderr


def test_a_failing_task_does_not_stop_the_others(tmp_path):
    words = ("advertising", "recommendation", "--seeds", 0, "--threads", 1)
    characterize(tmp_path / "out", *words)
    (tmp_path / "out/captures/advertising/job.json").write_text("")
    done = characterize(tmp_path / "out", *words, code=3)
    assert "1 of 2 tasks failed: advertising" in done.stderr and "advertising/job.json" in done.stderr
    found = json.loads((tmp_path / "out/characterization.json").read_text())
    assert [task["id"] for task in found["tasks"]] == ["recommendation"]
    only = characterize(tmp_path / "out", "advertising", "--seeds", 0, "--threads", 1, code=3)
    assert "advertising/job.json" in only.stderr


def test_bad_settings(tmp_path):
    assert "--ranks" in characterize(tmp_path / "out", "advertising", "--ranks", 2, code=2).stderr
    assert "no task" in characterize(tmp_path / "out", "advertisin", code=2).stderr
    done = characterize(tmp_path / "out", "spatial-transformer", data=tmp_path, code=4)
    assert "mnist-5k" in done.stderr and not (tmp_path / "out/characterization.json").exists()
