"""Replays of real recordings: everything runs, and operators read what their producers wrote."""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = pathlib.Path(os.environ.get("ETUDE_SHARED_DATA", "absent"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="recorded traces are absent")

# Records what the statements in place of BODY do, as PyTorch's observer sees it.
RECORD = """
import sys, torch
from torch.profiler import ExecutionTraceObserver
torch.manual_seed(0)
{setup}
observer = ExecutionTraceObserver()
observer.register_callback(sys.argv[1])
observer.start()
{body}
observer.stop()
observer.unregister_callback()
"""


def record(tmp_path, body, setup=""):
    path = tmp_path / "host.json"
    body, setup = textwrap.dedent(body), textwrap.dedent(setup)
    program = RECORD.format(body=body, setup=setup)
    subprocess.run([sys.executable, "-c", program, path], check=True, capture_output=True)
    return path


def replay(path, *options, codes=(0,)):
    done = subprocess.run(
        [ETUDE, "replay", path, "--json", "--warmup", "1", "--iterations", "2", *options],
        text=True,
        capture_output=True,
    )
    assert done.returncode in codes, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


@needs_data
@pytest.mark.parametrize("name", ["mlp", "resnet18", "dlrm", "transformer", "lstm"])
def test_cpu_traces_replay_completely(name):
    report = replay(DATA / f"cpu/{name}_et.json.gz")
    assert report["coverage"]["ops"] == 1.0
    assert report["skipped"] == []
    assert report["values"]["non_finite_tensors"] == 0
    assert report["same_kernels"] > 0.85


@needs_data
def test_collectives_of_a_single_process_are_skipped_and_said(tmp_path):
    folder = shutil.copytree(DATA / "cpu/ddp_mlp", tmp_path / "ddp_mlp")
    report = replay(folder, "--rank", "0", codes=(1,))
    assert all("c10d" in row["op"] for row in report["skipped"])
    assert sum(row["count"] for row in report["skipped"]) == 3
    assert all(row["reason"] for row in report["skipped"])
    assert 0.9 < report["coverage"]["ops"] < 1.0
    assert report["coverage"]["time"] is not None
    replay(folder, "--rank", "0", "--allow-skips")
    # Folders that are no captures of ours are left as they are.
    assert sorted(os.listdir(folder)) == sorted(os.listdir(DATA / "cpu/ddp_mlp"))


@needs_data
@pytest.mark.parametrize(
    "name, least",
    [("linear_et_1.0.1", 1.0), ("resnet_1gpu_et_1.0.3", 0.9), ("benchmark_simple_add_et", 1.0)],
)
def test_gpu_traces_run_on_the_cpu(name, least):
    report = replay(DATA / f"gpu/{name}.json.gz", "--device", "cpu", codes=(0, 1))
    assert report["device"] == "cpu"
    assert report["coverage"]["ops"] >= least
    assert all(row["reason"] for row in report["skipped"])


FLOW = """
    a = torch.zeros(8)
    b = torch.ones(8)
    c = a * b
    d = torch.nonzero(c)
"""


def test_consumers_read_what_producers_wrote(tmp_path):
    path = record(tmp_path, FLOW)
    # The number of rows that nonzero returns follows from the values it reads: none here.
    assert replay(path)["coerced"]["shapes"] == 0
    # With another producer upstream the same consumer must see other values.
    text = path.read_text()
    assert "aten::zeros(SymInt[] size" in text
    corrupted = tmp_path / "corrupted.json"
    corrupted.write_text(text.replace("aten::zeros", "aten::ones"))
    assert replay(corrupted)["coerced"]["shapes"] > 0


def test_a_reused_address_is_another_tensor(tmp_path):
    body = """
        a = torch.ones(1000)
        b = a + a
        del a
        c = torch.zeros(1000)   # most likely where `a` was
        d = torch.nonzero(c)
        e = torch.nonzero(b)
    """
    assert replay(record(tmp_path, body))["coerced"]["shapes"] == 0


def test_unusual_arguments(tmp_path):
    setup = """
        x = torch.randn(4, 6)
        rows = torch.tensor([0, 2, 5])
        many = [torch.randn(3) for _ in range(4)]
        more = [torch.randn(3) for _ in range(4)]
    """
    body = """
        y = x[:, rows]                                   # None inside a list of tensors
        z = torch.clamp(x, float("-inf"), float("inf"))  # infinities
        torch._foreach_add_(many, more)                  # lists of tensors, no result
        w = torch.nan_to_num(x, nan=float("nan"))
        v = torch.cat([y, z], dim=1)
        u = torch.empty(())
        t = torch.embedding(x, rows.clamp(max=3))
    """
    report = replay(record(tmp_path, body, setup))
    assert report["coverage"]["ops"] == 1.0, report["skipped"]


def test_unknown_operators_are_skipped_with_a_reason(tmp_path):
    path = record(tmp_path, FLOW)
    strange = tmp_path / "strange.json"
    strange.write_text(path.read_text().replace("aten::mul", "strange::mul"))
    report = replay(strange, codes=(1,))
    assert [row["op"] for row in report["skipped"]] == ["strange::mul.Tensor"]
    assert report["skipped"][0]["count"] == 1
    assert report["coverage"]["ops"] < 1.0


def test_huge_tensors_are_refused_before_they_are_made(tmp_path):
    path = record(tmp_path, FLOW)
    trace = json.loads(path.read_text())
    for node in trace["nodes"]:
        for side in ("inputs", "outputs"):
            for value, shape in zip(node[side]["values"], node[side]["shapes"]):
                if isinstance(value, list) and len(value) == 6 and shape == [8]:
                    shape[0] = value[3] = 2**60
            strides = node[side].get("strides", [])
            assert isinstance(strides, list)
    huge = tmp_path / "huge.json.gz"
    huge.write_bytes(gzip.compress(json.dumps(trace).encode()))
    done = subprocess.run([ETUDE, "replay", huge], text=True, capture_output=True)
    assert done.returncode == 3, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_state_does_not_drift(tmp_path):
    # Multiplied with random numbers again and again, values would end as denormal numbers.
    path = record(tmp_path, "x.mul_(y)", "x, y = torch.randn(1000), torch.randn(1000)")
    report = replay(path, "--iterations", "150")
    assert report["coverage"]["ops"] == 1.0
    assert report["values"] == {"non_finite_tensors": 0, "denormal_tensors": 0}


def test_same_seed_same_setup(tmp_path):
    path = record(tmp_path, FLOW)
    one, two = (replay(path, "--seed", "7") for _ in range(2))
    for key in ("coverage", "skipped", "coerced", "memory", "same_kernels", "kernels"):
        assert one[key] == two[key]
