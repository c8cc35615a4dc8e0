"""Replays of composed traces: all of it runs, on the memory that the recording had, and its time is compared."""

import json
import os
import pathlib
import subprocess

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
TRACE = pathlib.Path(__file__).resolve().parent.parent / "data/modules.etude"


def compose(tmp_path, parts):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'[traces]\nnet = "{TRACE}"\n{parts}')
    subprocess.run([ETUDE, "compose", recipe, "-o", tmp_path / "composed.json"], check=True, capture_output=True)
    return tmp_path / "composed.json"


def replay(path, codes=(0,)):
    done = subprocess.run(
        [ETUDE, "replay", path, "--json", "--warmup", "0", "--iterations", "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode in codes, done.stderr
    return json.loads(done.stdout)


def test_repetitions_run_on_the_memory_of_the_recording(tmp_path):
    recorded = replay(TRACE)
    report = replay(compose(tmp_path, "[[part]]\nrepeat = 3\n"))
    assert report["operators"]["total"] == 3 * recorded["operators"]["total"]
    assert report["skipped"] == []
    assert report["same_kernels"] == 1.0
    assert report["memory"]["outside_bytes"] == recorded["memory"]["outside_bytes"]
    assert recorded["expected"] is None
    expected = report["expected"]
    assert expected["ms"] > 0 and expected["operators_without_time"] == 0
    measured = report["replay"]["step_ms"]["wall"]["median"]
    assert expected["deviation"]["wall"] == pytest.approx(measured / expected["ms"] - 1)


def test_another_operator_runs_in_the_place_of_the_recorded_one(tmp_path):
    names = [row["op"] for row in replay_operators(compose(tmp_path, "[[part]]\n"))]
    assert "aten::relu" in names
    parts = '[[part]]\nreplace = { op = "aten::relu", with = "aten::tanh" }\n'
    path = compose(tmp_path, parts)
    names = [row["op"] for row in replay_operators(path)]
    assert "aten::tanh" in names and "aten::relu" not in names
    # An operator that is none of PyTorch's is skipped and said.
    path = compose(tmp_path, parts.replace("aten::tanh", "aten::nothing"))
    report = replay(path, codes=(1,))
    assert {row["op"] for row in report["skipped"]} == {"aten::nothing"}
    assert report["expected"]["ms"] is None and report["expected"]["deviation"]["wall"] is None


def replay_operators(path):
    done = subprocess.run(
        [ETUDE, "replay", path, "--json", "--per-op", "--warmup", "0", "--iterations", "1"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["per_operator"]
