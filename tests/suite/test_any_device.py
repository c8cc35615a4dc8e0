"""The suite on a device that a user's library registers. PyTorch knows only its name (PrivateUse1)."""

import json
import os
import pathlib
import subprocess

import pytest

BIN = pathlib.Path(os.environ["ETUDE_BIN"])
LOOPBACK = BIN.parent / "tests/operators/test_device.so"  # of test_device.cc
THERE = ("--device", "loopback", "--library", LOOPBACK)


def suite_run(*words, code):
    command = [BIN / "etude", "suite", "run", *words, "--data", os.environ["ETUDE_SUITE_DATA"], "--threads", 1]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def records(*words, code=0):
    return [task["runs"][0] for task in json.loads(suite_run(*words, "--json", code=code).stdout)["tasks"]]


def test_a_task_learns_as_on_the_cpu(tmp_path):
    words = ("spatial-transformer", "--most-steps", 80, "--evaluate-every", 40)
    ((here,), (there,)) = records(*words, code=1), records(*words, *THERE, "-o", tmp_path, code=1)
    assert there["device"] == "loopback" and there["complete"]
    losses = [point["loss"] for point in there["curve"]]
    assert losses[1] < losses[0]
    assert losses == pytest.approx([point["loss"] for point in here["curve"]], rel=1e-4)
    assert there["quality"] == pytest.approx(here["quality"], abs=0.005)


def test_tasks_take_steps():
    # Models with recurrent layers need fused cells of a device, which this one lacks.
    tasks = ("image-classification", "object-detection", "learning-to-rank")
    steps = ("--mode", "steps", "--batch", 4, "--warmup", 0, "--iterations", 2)
    assert [run["steps"] for run in records(*tasks, *steps, *THERE)] == [2] * 3
    done = suite_run("image-to-text", *steps, *THERE, code=70)
    assert "aten::_thnn_fused_lstm_cell" in done.stderr


def test_ranks_share_a_batch():
    (run,) = records("spatial-transformer", "--mode", "steps", "--warmup", 0, "--iterations", 2, "--ranks", 2, *THERE)
    assert (run["ranks"], run["device"], run["steps"]) == (2, "loopback", 2)


def test_a_step_is_recorded(tmp_path):
    suite_run("spatial-transformer", "--warmup", 0, "--iterations", 1, "--record", tmp_path, *THERE, code=0)
    command = [BIN / "etude", "convert", tmp_path / "spatial-transformer", "--to", "linked", "-o", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    trace = json.loads((tmp_path / "linked.0.json").read_text())
    names = [node["name"] for node in trace["nodes"]]
    for name in ("aten::convolution_overrideable", "aten::convolution_backward_overrideable", "aten::_copy_from"):
        assert name in names
    assert "loopback:0" in json.dumps(trace)


def test_devices_that_are_not_there():
    assert "found 'loopback', expected cpu" in suite_run("C15", "--device", "loopback", code=2).stderr
    assert "'maia:0' is not available" in suite_run("C15", "--device", "maia:0", code=4).stderr
