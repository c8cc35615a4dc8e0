"""`etude compare --run` of a recorded suite task: `suite run` runs its steps on request, in turn with the replay. Tests
check what was measured, but never durations."""

import json
import os
import subprocess

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = os.environ["ETUDE_SUITE_DATA"]
TASK = "learning-to-rank"
SETTINGS = ["--batch", "8", "--threads", "1", "--optimizer", "sgd"]


def record(folder, *words):
    line = [ETUDE, "suite", "run", TASK, *SETTINGS, *words, "--data", DATA, "--iterations", "2", "--record", folder]
    subprocess.run(line, check=True, capture_output=True)
    return folder / TASK


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record(tmp_path_factory.mktemp("recording"))


def compare(recording, *words, command=None, pairs=10):
    line = [ETUDE, "compare", recording, "--run", "--pairs", str(pairs), "--starts", "1", "--json", *map(str, words)]
    if command is not None:
        line += ["--", ETUDE, "suite", "run", *command]
    path = os.pathsep.join([os.environ["ETUDE_BIN"], os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "ETUDE_SUITE_DATA": DATA}
    return subprocess.run(line, capture_output=True, text=True, env=environment)


def test_a_task_and_its_replay_in_turn(recording, tmp_path):
    job = json.loads((recording / "job.json").read_text())
    words = ["etude", "suite", "run", TASK, "--scale", "smoke", "--seed", "1"]
    assert job["command"] == [*words, "--batch", "8", "--optimizer", "sgd", "--threads", "1"]
    assert all(step["stolen_ns"] >= 0 for step in job["ranks"]["0"]["timed_steps"])
    done = compare(recording, "--trust", "--certificate", tmp_path / "c.json")
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert result["pairs"]["measured"] == 10 and result["threads"] == 1 and result["command"] == job["command"]
    assert result["replay"]["operators"] == result["replay"]["operators_replayed"] > 100
    metrics = {row["name"]: row for row in result["metrics"]}
    for name in ("cpu_time", "wall_time", "peak_resident"):
        assert metrics[name]["original"]["median"] > 0 and metrics[name]["replay"]["median"] > 0
    certificate = json.loads((tmp_path / "c.json").read_text())
    assert certificate["benchmark"]["recording"] == job["job"]
    assert certificate["benchmark"]["step"] == f"{TASK}, smoke scale, batch 8"


def test_ranks_run_their_steps_together(tmp_path):
    recording = record(tmp_path, "--ranks", "2")
    done = compare(recording, "--trust", pairs=2)
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert result["world_size"] == 2 and result["pairs"]["measured"] == 2


@pytest.mark.parametrize(
    "command, found",
    [
        (["advertising", "--batch", "8"], "advertising, smoke scale, batch 8"),
        ([TASK, "--batch", "8", "--precision", "bf16"], f"{TASK}, smoke scale, batch 8, bf16"),
    ],
)
def test_another_task_is_refused_before_the_first_pair(recording, command, found):
    done = compare(recording, command=[*command, "--threads", "1"])
    assert done.returncode == 3 and done.stdout == ""
    said = done.stderr.splitlines()[-1]  # after warnings about the machine
    assert f"found a program with steps '{found}', expected the recorded step '{TASK}, smoke scale, batch 8'" in said


def test_several_tasks_are_refused(recording):
    done = compare(recording, command=[TASK, "advertising"])
    assert done.returncode == 3
    assert "found 2 tasks, expected one to compare with" in done.stderr
