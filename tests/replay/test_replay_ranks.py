"""Replays of all ranks of a job: collectives run for real between local processes."""

import gzip
import json
import shutil
import subprocess

import pytest
from two_ranks import ETUDE, record, replay, run

JOB = """
import sys, torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
rank = dist.get_rank()
layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
model = nn.parallel.DistributedDataParallel(layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(5, 8)


def collectives():
    ones, two = torch.ones(4), [torch.empty(4), torch.empty(4)]
    dist.broadcast(ones, 0)
    dist.all_reduce(ones)
    dist.reduce(ones, 1)
    dist.all_gather(two, ones)
    dist._all_gather_base(torch.empty(8), ones)
    dist._reduce_scatter_base(torch.empty(4), torch.ones(8))
    dist.all_to_all_single(torch.empty(4), ones)
    dist.gather(ones, two if rank == 0 else None, 0)
    dist.scatter(ones, two if rank == 0 else None, 0)
    dist.barrier()
    if rank == 0:
        dist.send(ones, 1)
        dist.recv(ones)
    else:
        dist.recv(ones, 0)
        dist.send(ones, 0)
    work = dist.all_reduce(ones, async_op=True)
    other = torch.zeros(3) + 1
    work.wait()
    return ones + 1


for _ in range(8):
    optimizer.zero_grad()
    collectives()
    # On rank 0 all gradients are infinite, on rank 1 all are 0 but for what comes from rank 0.
    model(x).sum().backward(torch.full((), float("inf") if rank == 0 else 0.0))
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return record(tmp_path_factory.mktemp("ranks"), JOB)


@pytest.fixture
def copy(job, tmp_path):
    return shutil.copytree(job, tmp_path / "job")


def edit_host(folder, rank, change):
    path = folder / f"host.{rank}.json.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))


def test_all_ranks_replay_completely(job):
    report = replay(job, "--ranks", "all")
    assert report["rank"] == 0 and report["skipped"] == []
    assert report["coverage"] == {"ops": 1.0, "time": 1.0}
    assert [row["rank"] for row in report["ranks"]] == [0, 1]
    for row in report["ranks"]:
        assert row["coverage"]["ops"] == 1.0
        assert row["step_ms"]["wall"]["median"] > 0
    for rank in (0, 1):  # each has its report
        own = json.loads((job / f"replay.{rank}.json").read_text())
        assert own["rank"] == rank and own["ranks"] == report["ranks"]
    compared = subprocess.run([ETUDE, "compare", job], text=True, capture_output=True)
    assert compared.returncode == 0, compared.stderr
    assert "rank 0 " in compared.stdout and "rank 1 " in compared.stdout


def test_a_rank_reads_what_others_reduced(job):
    # Rank 1 becomes infinite by what rank 0 adds to its gradients, and only by that.
    together = replay(job, "--ranks", "2", "--rank", "1")
    assert together["rank"] == 1 and together["values"]["non_finite_tensors"] > 0
    alone = replay(job, "--rank", "1", code=1)
    assert alone["values"]["non_finite_tensors"] == 0 and alone["ranks"] == []
    assert all("--ranks" in row["reason"] for row in alone["skipped"])


def test_paced_ranks_step_together(job):
    done = run(job, "--ranks", "all", "--paced", text_in="\n\n\nkernels\n")
    assert done.returncode == 0 and done.stderr == ""
    ready, *steps, kernels = map(json.loads, done.stdout.splitlines())
    assert [row["coverage"]["ops"] for row in ready["ranks"]] == [1.0, 1.0]
    assert 0.5 < kernels["same_kernels"] <= 1
    assert len(steps) == 3 and all(step["wall_ns"] > 0 for step in steps)


def test_a_rank_that_fails_ends_all(copy):
    (copy / "host.1.json.gz").write_bytes(gzip.compress(b'{"schema": "1.1.1-chakra.0.0.4"}'))
    done = run(copy, "--ranks", "all")
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("etude: rank 1: ")


def test_a_collective_that_others_do_not_join_times_out(copy):
    edit_host(copy, 1, lambda text: text.replace("c10d::allreduce_", "c10d::unknown_"))
    done = run(copy, "--ranks", "all", "--timeout", "1")
    assert done.returncode == 70 and done.stdout == ""
    assert "c10d::" in done.stderr and "rank" in done.stderr


def test_ranks_that_are_not_there(copy):
    assert "recorded" in run(copy, "--ranks", "3").stderr
    (copy / "host.1.json.gz").unlink()
    (copy / "device.1.json.gz").unlink()
    done = run(copy, "--ranks", "all")
    assert done.returncode == 3 and "rank 1" in done.stderr
    assert run(copy / "host.0.json.gz", "--ranks", "all").returncode == 2


@pytest.mark.parametrize("too", ["deep", "shallow"])
def test_nesting_that_gloo_disturbed_is_set_right(copy, too):
    """PyTorch's observer nests operators wrongly when a collective ends while they run."""
    right = replay(copy, "--rank", "0", code=1)["operators"]

    def disturb(text):
        trace = json.loads(text)
        by_id = {node["id"]: node for node in trace["nodes"]}
        schema = lambda node: next(a["value"] for a in node["attrs"] if a["name"] == "op_schema")
        inside = lambda node: node["ctrl_deps"] in by_id and schema(by_id[node["ctrl_deps"]]) != ""
        operators = [by_id[i] for i in sorted(by_id) if schema(by_id[i]) != ""]
        if too == "deep":
            one, other = [node for node in operators if not inside(node)][-2:]
            other["ctrl_deps"] = one["id"]
        else:
            inner = next(node for node in operators if inside(node))
            inner["ctrl_deps"] = by_id[inner["ctrl_deps"]]["ctrl_deps"]
        return json.dumps(trace)

    edit_host(copy, 0, disturb)
    assert replay(copy, "--rank", "0", code=1)["operators"] == right
