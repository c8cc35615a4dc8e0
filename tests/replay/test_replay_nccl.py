"""Ranks on CUDA devices, which communicate through PyTorch's NCCL groups, on a machine without a GPU. Below PyTorch
is a replacement of CUDA and NCCL (tests/gpu/cuda.cc), in which collectives wait like real ones, and kernels do
nothing. Requires a PyTorch that is built for CUDA, and headers: ETUDE_TORCH_PYTHON=… cmake …, and ctest -R
replay_nccl."""

import collections
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from forked_python import LIGHT
from test_replay_ranks import JOB, launched, replay_with_a_pause
from two_ranks import ETUDE, record, replay, run

STAND_IN = pathlib.Path(os.environ["ETUDE_BIN"]).parent / "tests/operators/test_cuda.so"
pytestmark = pytest.mark.skipif(not STAND_IN.exists(), reason="a PyTorch without CUDA, or headers of CUDA are missing")
ON_GPUS = ("--device", "cuda")

# Each rank sends before it receives, which NCCL accepts only as one call. The received data are then sent on.
MESSAGES = LIGHT + """
import torch, torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    own, other = torch.ones(1000) * rank, torch.empty(1000)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]):
        work.wait()
    if rank == 0:
        dist.send(other * 2, 1)
        dist.recv(other, 1)
    else:
        dist.recv(other, 0)
        dist.send(other + 1, 0)
    weight.sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """NCCL does not support receives from any rank."""
    return record(tmp_path_factory.mktemp("nccl"), JOB.replace("dist.recv(ones)\n", "dist.recv(ones, 1)\n"))


@pytest.fixture
def log(job, monkeypatch, tmp_path):  # recorded before there are GPUs
    """Returns the requests to NCCL on two GPUs."""
    monkeypatch.setenv("LD_PRELOAD", str(STAND_IN))
    monkeypatch.setenv("DISABLE_ADDMM_CUDA_LT", "1")
    monkeypatch.setenv("ETUDE_TEST_NCCL_LOG", str(tmp_path / "nccl.log"))
    return tmp_path / "nccl.log"


def lines(log, rank):
    """Returns kind, elements and number of calls grouped together for the rank's requests to NCCL."""
    rows = [line.split() for line in log.read_text().splitlines()]
    return [(kind, int(count), int(together)) for own, _, kind, count, together in rows if int(own) == rank]


def test_all_ranks_communicate_through_nccl(job, log):
    report = replay(job, "--ranks", "all", *ON_GPUS)
    assert report["device"] == "cuda:0" and report["skipped"] == []
    assert [row["coverage"]["ops"] for row in report["ranks"]] == [1.0, 1.0]
    ours, theirs = lines(log, 0), lines(log, 1)
    kinds = collections.Counter(kind for kind, _, _ in ours)
    assert {"broadcast", "all_reduce", "reduce", "all_gather", "reduce_scatter", "send", "receive"} <= set(kinds)
    together = ("broadcast", "all_reduce", "reduce", "all_gather", "reduce_scatter")
    assert [line for line in ours if line[0] in together] == [line for line in theirs if line[0] in together]
    # Each step has the same number: the first, a warm-up, two timed, one of MeasureOtherMode, and recorded ones.
    steps = kinds["reduce"]
    assert steps >= 4 and all(count % steps == 0 for count in kinds.values())


def test_messages_that_cross_are_given_as_one(log, tmp_path, monkeypatch):
    monkeypatch.delenv("LD_PRELOAD")
    folder = record(tmp_path / "messages", MESSAGES)
    monkeypatch.setenv("LD_PRELOAD", str(STAND_IN))
    assert replay(folder, "--ranks", "all", *ON_GPUS)["skipped"] == []
    for rank, then in ((0, ["send", "receive"]), (1, ["receive", "send"])):
        sent = [(kind, together) for kind, count, together in lines(log, rank) if count == 1000]
        assert sent[:2] == [("send", 2), ("receive", 2)] and [kind for kind, _ in sent[2:4]] == then
        assert sent == sent[:4] * (len(sent) // 4)


def test_receives_from_any_rank_are_told(log, tmp_path, monkeypatch):
    monkeypatch.delenv("LD_PRELOAD")
    folder = record(tmp_path / "any", JOB)
    monkeypatch.setenv("LD_PRELOAD", str(STAND_IN))
    done = run(folder, "--ranks", "all", *ON_GPUS)
    assert done.returncode == 3 and "do not match and would deadlock" in done.stderr, done.stderr
    alone = replay(folder, "--rank", "0", "--peers", "fake", *ON_GPUS)
    assert alone["skipped"] == []


def test_a_time_out_says_who_waits_for_whom(job, log):
    errors = replay_with_a_pause(job, None, options=ON_GPUS)
    # Between steps ranks wait for the store.
    assert "the device has made no progress for 1000 ms" in errors or "wait timeout" in errors, errors
    assert "rank 1 does not answer" in errors, errors
    assert any(re.search(r"rank 0 is (in c10d::.*|after step \d+); waits for rank 1$", line) for line in errors.splitlines()), errors


def test_each_rank_needs_a_device(job, log, monkeypatch):
    monkeypatch.setenv("ETUDE_TEST_GPUS", "1")
    done = run(job, "--ranks", "all", *ON_GPUS)
    assert done.returncode == 4 and "found 1 on this machine, expected one per rank" in done.stderr
    # A launcher may have given one to each process.
    ranks = [launched(job, rank, "--iterations", 2, *ON_GPUS) for rank in (0, 1)]
    outputs = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert json.loads(outputs[0][0])["device"] == "cuda:0"


def test_torchrun_says_which_device(job, log):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
    command += [ETUDE, "replay", job, "--warmup", "1", "--iterations", "2", "--json", "-q", *ON_GPUS]
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(lines(log, 0)) == len(lines(log, 1)) > 0


def test_emulated_communications_wait_in_the_stream(job, log):
    report = replay(job, "--rank", "0", "--peers", "20ms,1GB/s", *ON_GPUS)
    assert report["skipped"] == [] and report["device"] == "cuda:0"
    assert report["replay"]["step_ms"]["wall"]["median"] >= report["peers"]["communications"] * 20
    assert not log.exists()


@pytest.mark.parametrize("language", ["python", "cpp"])
def test_benchmarks_communicate_through_nccl(job, log, tmp_path, language):
    replayed = replay(job, "--ranks", "all", *ON_GPUS)
    kinds = {kind for kind, _, _ in lines(log, 0)}
    log.unlink()
    folder = tmp_path / "bench"
    made = [ETUDE, "benchmark", job, "--ranks", "all", "-o", folder, "--warmup", "1", "--iterations", "2", "-q"]
    subprocess.run(made, check=True, env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
    program = ["benchmark.py"]
    if language == "cpp":
        libtorch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
        build = ["cmake", "-S", ".", "-B", "build", f"-DTORCH={libtorch}", "-DCMAKE_BUILD_TYPE=Debug"]
        subprocess.run([*build, "-DCMAKE_CXX_FLAGS_DEBUG=-O0"], cwd=folder, check=True)
        subprocess.run(["cmake", "--build", "build"], cwd=folder, check=True)
        program = ["--no-python", "build/benchmark"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*torchrun, *program, "--device", "cuda", "--json", "--iterations", "3", "--warmup", "1"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["steps"] == 3 and [row["rank"] for row in result["ranks"]] == [0, 1]
    assert kinds <= {kind for kind, _, _ in lines(log, 0)}
    assert replayed["skipped"] == []


CALIBRATE = (ETUDE, "calibrate", "--device", "cuda", "--force", "--repeats", "3", "--rounds", "1", "--sizes", "8,32,1KiB")


def test_calibrate_measures_nccl(log, monkeypatch, tmp_path):
    """Each communication of the stand-in takes at least 3 ms, and moves nothing: sizes do not matter."""
    monkeypatch.setenv("ETUDE_TEST_NCCL_TIME", "3000")
    path = tmp_path / "machine.toml"
    done = subprocess.run([*CALIBRATE, "-o", path], text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    file = tomllib.loads(path.read_text())
    assert [file["machine"][key] for key in ("backend", "device", "gpu")] == ["nccl", "cuda", "stand-in"]
    assert len(file["communication"]) == 10
    for row in file["communication"]:
        assert all(time >= 3_000_000 for time in row["time_ns"]), row
        assert set(row["cores"]) == {0}
    kinds = {kind for kind, _, _ in lines(log, 0)}
    # NCCL's gathers and scatters are messages, and its barriers all-reduces.
    assert {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "send", "receive"} <= kinds
    # The file is kept, but not that of another GPU.
    log.unlink()
    done = subprocess.run([*CALIBRATE, "-o", path, "--json"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0 and {row["state"] for row in json.loads(done.stdout)["communication"]} == {"kept"}
    path.write_text(path.read_text().replace("stand-in", "NVIDIA H200"))
    done = subprocess.run([*CALIBRATE, "-o", path, "--sizes", "64"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 3 and "gpu: found 'NVIDIA H200', expected 'stand-in'" in done.stderr, done.stderr
    assert not log.exists()


def test_calibrate_needs_a_gpu_for_each_rank(log, tmp_path):
    done = subprocess.run([*CALIBRATE, "-o", tmp_path / "machine.toml", "--ranks", "3"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 4 and "found 2 on this machine, expected one per rank" in done.stderr, done.stderr
    assert not (tmp_path / "machine.toml").exists()
