"""Replays on a device other than the CPU: one from a library (tests/suite/test_device.cc), whose memory is the
host's. No test covers NCCL on real GPUs (docs/untested.md)."""

import json
import os
import pathlib

import pytest
from test_replay_ranks import job  # noqa: F401  (a fixture)
from two_ranks import replay, run

BIN = pathlib.Path(os.environ["ETUDE_BIN"])
MLP = pathlib.Path(__file__).resolve().parents[1] / "data/mlp_et.json.gz"
LIBRARY = ("--library", BIN.parent / "tests/operators/test_device.so")
THERE = ("--device", "loopback", "--experimental", *LIBRARY)


def test_a_step_runs_on_the_device(tmp_path):
    report = replay(MLP, *THERE, "--record", tmp_path / "capture.0.etude")
    assert report["device"] == "loopback:0"
    assert report["coverage"]["ops"] == 1.0 and report["skipped"] == []
    assert report["replay"]["step_ms"]["wall"]["median"] > 0


def test_a_rank_alone_communicates_on_the_device(job):  # noqa: F811
    here = replay(job, "--rank", "0", "--peers", "20us,1GB/s")
    there = replay(job, "--rank", "0", "--peers", "20us,1GB/s", *THERE)
    assert there["skipped"] == [] and there["coverage"]["ops"] == 1.0
    assert there["peers"] == here["peers"] and there["peers"]["communications"] > 0


@pytest.mark.parametrize(
    "options, code, words",
    [
        (("--ranks", "all", *THERE), 4, "communication is supported on the CPU (Gloo) and on CUDA devices (NCCL)"),
        (("--ranks", "all", *THERE, "--device", "loopback:0"), 2, "each rank requires its own device"),
        (("--rank", "0", "--peers", "fake", *THERE, "--scale", "comm=2"), 4, "--scale and --straggler"),
        (("--rank", "0", "--peers", "fake", *THERE[:2], *LIBRARY), 2, "--experimental"),
        (("--ranks", "all", "--device", "maia"), 4, "'maia' is not available here"),
        (("--ranks", "all", "--device", "meta"), 2, "expected a device that computes"),
        (("--ranks", "all", "--device", "abacus"), 2, "found 'abacus', expected cpu, cuda"),
    ],
)
def test_what_a_device_cannot_do_is_told(job, options, code, words):  # noqa: F811
    done = run(job, *options)
    assert done.returncode == code and words in done.stderr, done.stderr
    assert done.stdout == ""
