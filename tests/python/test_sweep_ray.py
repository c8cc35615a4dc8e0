"""The Ray driver of `etude sweep` (docs/examples/sweep_ray.py) on a cluster of this machine."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("ray")

ROOT = pathlib.Path(__file__).resolve().parents[2]
ETUDE = str(pathlib.Path(os.environ["ETUDE_BIN"]).resolve() / "etude")


def run(*command, cwd):
    return subprocess.run(
        command, cwd=cwd, check=True, capture_output=True, text=True, timeout=300
    ).stdout


def test_shards_by_ray_are_the_whole(tmp_path):
    run(ETUDE, "generate", "microbench", "all_reduce", "--ranks", "8", "-o", "ar/bench", cwd=tmp_path)
    (tmp_path / "sweep.toml").write_text((ROOT / "tests/data/sweep.toml").read_text())
    driver = str(ROOT / "docs/examples/sweep_ray.py")
    whole = run(ETUDE, "sweep", "-q", "sweep.toml", "-o", "whole", cwd=tmp_path)
    by_ray = run(
        sys.executable, driver, "sweep.toml", "ray", "--shards", "3", "--etude", ETUDE, cwd=tmp_path
    )
    kept = lambda folder: {p.name: p.read_text() for p in (tmp_path / folder / "points").iterdir()}
    assert kept("ray") == kept("whole")
    assert by_ray.replace(str(tmp_path) + "/", "").endswith(whole)
