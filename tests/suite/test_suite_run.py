"""`etude suite run` of several tasks: all are checked before the first begins, and a failing one does not affect the
others."""

import json
import os
import signal
import subprocess
import sys

import pytest
from on_terminal import OnTerminal
from paper_data import write_imagenet, write_mnist

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = os.environ["ETUDE_SUITE_DATA"]


def run(*words, code):
    done = subprocess.run([ETUDE, "suite", "run", *map(str, words), "--threads", "1"], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def paper(tmp_path, *words, code, more=("--mode", "steps", "--warmup", 0, "--iterations", 1)):
    words = ("image-classification", "spatial-transformer", "--scale", "paper", "--batch", 2, "--data", tmp_path, *more, *words)
    return run(*words, code=code)


def damage_pictures(data):
    for path in (data / "imagenet/train").glob("*/*.JPEG"):
        path.write_bytes(path.read_bytes()[:100])


def test_data_of_all_tasks_are_looked_at_first(tmp_path):
    done = run("image-to-text", "spatial-transformer", "learning-to-rank", "--data", tmp_path, "-o", tmp_path / "runs", code=4)
    assert f"{tmp_path}/mnist-5k" in done.stderr and f"{tmp_path}/nycflights" in done.stderr
    assert done.stdout == "" and list((tmp_path / "runs").iterdir()) == []


def test_settings_of_all_tasks_are_looked_at_first(tmp_path):
    short = ("--data", DATA, "--mode", "steps", "--warmup", 0, "--iterations", 1, "-o", tmp_path)
    run("spatial-transformer", *short, code=0)
    done = run("image-classification", "spatial-transformer", *short, "--precision", "bf16", code=2)
    assert "an earlier run with precision fp32, expected bf16" in done.stderr and done.stdout == ""
    assert len(list(tmp_path.iterdir())) == 1
    # Ranks without a sample of a batch.
    done = run("image-classification", "image-to-text", *short[:-2], "--ranks", 2, "--batch", 1, code=2)
    assert done.stdout == "", done.stderr


def test_a_checkpoint_is_looked_at_first(tmp_path):
    words = ("spatial-transformer", "--data", DATA, "--target", "1.1", "--evaluate-every", "20", "-o", tmp_path)
    running = OnTerminal([ETUDE, "suite", "run", *words, "--threads", "1"])
    running.wait_for("accuracy")  # after some steps
    running.process.send_signal(signal.SIGINT)
    running.end()
    assert [path.suffix for path in tmp_path.iterdir()] == [".safetensors"]
    done = run("image-classification", *words, "--rate", "0.5", code=2)
    assert "an earlier run without --rate 0.5" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_task_that_fails_takes_nothing_from_the_others(as_json, tmp_path):
    write_imagenet(tmp_path)
    write_mnist(tmp_path)
    damage_pictures(tmp_path)  # their contents are read during training
    words = ["--json"] if as_json else []
    done = paper(tmp_path, *words, code=3)
    assert "image-classification, seed 1: " in done.stderr and "expected a JPEG image" in done.stderr
    assert "1 of 2 tasks failed: image-classification" in done.stderr
    if as_json:
        found = json.loads(done.stdout)
        assert [task["id"] for task in found["tasks"]] == ["spatial-transformer"]
        (failed,) = found["failed"]
        assert (failed["id"], failed["seed"], failed["exit_code"]) == ("image-classification", 1, 3)
    else:
        assert done.stdout.startswith("spatial-transformer, seed 1: ")


def test_more_threads_than_cores_are_said(tmp_path):
    words = ["spatial-transformer", "--data", DATA, "--mode", "steps", "--warmup", "0", "--iterations", "1", "--seeds", "2"]
    cores = len(os.sched_getaffinity(0))
    done = subprocess.run([ETUDE, "suite", "run", *words, "--threads", str(cores + 1)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.count(f"{cores + 1} threads on") == 1
    done = subprocess.run([ETUDE, "suite", "run", *words, "--ranks", "2", "--batch", "8", "--threads", str(cores)],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0 and f"2 ranks × {cores} threads on" in done.stderr
    assert "threads on" not in run(*words, code=0).stderr


def test_other_programs_on_the_cores_are_said(tmp_path):
    cores = len(os.sched_getaffinity(0))
    spin = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        words = ["spatial-transformer", "--data", DATA, "--mode", "steps", "--warmup", "0", "--iterations", "20", "-o", str(tmp_path)]
        done = subprocess.run([ETUDE, "suite", "run", *words, "--threads", str(cores)], capture_output=True, text=True)
    finally:
        for process in spin:
            process.kill()
            process.wait()
    assert done.returncode == 0 and "other programs use " in done.stderr, done.stderr
    (path,) = tmp_path.glob("*.json")
    assert json.loads(path.read_text())["others_cores"] > 0
