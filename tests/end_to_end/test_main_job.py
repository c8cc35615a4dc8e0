"""The main job on a real program: record, convert, validate, replay, compare; and link, with PyTorch's observers."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import own_state  # noqa: E402, F401

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")


def etude(*args, expect=0, **kwargs):
    done = subprocess.run([ETUDE, *map(str, args)], text=True, capture_output=True, **kwargs)
    assert done.returncode == expect, f"{args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.mark.parametrize("recorder", ["auto", "observers"])
def test_main_job(tmp_path, recorder):
    job = tmp_path / "job"
    program = [sys.executable, ROOT / "examples/train_resnet.py", "--epochs", "1", "--size", "16"]
    counts = ["--warmup", 3, "--steps", 8]
    done = etude("record", "-o", job, "--recorder", recorder, *counts, "--", *program)
    assert "test accuracy" in done.stdout  # the program's own output passes through
    assert (job / "job.json").exists()
    if recorder == "auto":
        assert (job / "capture.0.etude").exists()
        assert "already contains times" in etude("link", job).stderr
    else:
        assert (job / "host.0.json.gz").exists() and (job / "device.0.json.gz").exists()
        etude("link", job)
    etude("convert", job)
    verdict = json.loads(etude("validate", job, "--json").stdout)
    assert verdict["valid"] and len(verdict["traces"]) >= (2 if recorder == "auto" else 4)

    replay = json.loads(
        etude("replay", job, "--json", "--warmup", 2, "--iterations", 8).stdout
    )
    assert replay["coverage"]["ops"] == 1.0
    assert replay["coverage"]["time"] == 1.0
    assert replay["skipped"] == []
    for side in ("original", "replay"):
        for clock in ("wall", "cpu"):
            step = replay[side]["step_ms"][clock]
            assert 0 < step["p25"] <= step["median"] <= step["p75"]
    ratio = replay["replay"]["step_ms"]["cpu"]["median"] / replay["original"]["step_ms"]["cpu"]["median"]
    assert abs(replay["error"]["cpu"] - (ratio - 1)) < 1e-6

    table = etude("compare", job, "--tolerance", "100000%").stdout
    assert "original" in table and "replay" in table
    # With a tolerance that nothing meets, the answer is no.
    etude("compare", job, "--tolerance", "0%", expect=1)


def test_program_without_torch_says_so(tmp_path):
    done = etude("record", "-o", tmp_path / "job", "--", sys.executable, "-c", "print(6 * 7)", expect=1)
    assert done.stdout == "42\n"
    assert "torch" in done.stderr


def test_exit_code_passes_through(tmp_path):
    etude("record", "-o", tmp_path / "job", "--", sys.executable, "-c", "raise SystemExit(7)", expect=7)
