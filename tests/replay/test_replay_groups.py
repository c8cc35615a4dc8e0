"""Collectives of several process groups, as recorded: group, ranks, reduction."""

import json
import subprocess

import pytest
import two_ranks
from forked_python import END_OF_RANK, LIGHT

START = """
import torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
rank = dist.get_rank()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
"""

STEPS = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(5, 8)
for _ in range(8):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    more()
""" + END_OF_RANK

# A part of torch, or all of it for sharded models and functional collectives.
WHOLE = LIGHT + "light_torch.load()\n"

# On rank 0 all values are infinite, on rank 1 all are 0, except for the effect of a reduction.
REDUCTIONS = """
both = dist.new_group([0, 1])
own = [dist.new_group([0]), dist.new_group([1])][rank]
state = torch.zeros(4)

def more():
    for group, reduction in GROUPS:
        value = torch.full((4,), float("inf") if rank == 0 else 0.0)
        dist.all_reduce(value, op=reduction, group=group)
        state.copy_(value)
"""


def record(folder, body, recorder="native", start=LIGHT):
    return two_ranks.record(folder, start + START + body + STEPS, "--recorder", recorder)


def replay(folder, *options, code=0):
    return two_ranks.replay(folder, "--ranks", "all", *options, code=code)


def check_whole(report):
    assert report["skipped"] == []
    assert [row["coverage"]["ops"] for row in report["ranks"]] == [1.0, 1.0]
    assert report["coerced"]["assumed_values"] == 0


def reductions(groups):
    return REDUCTIONS.replace("GROUPS", groups)


@pytest.mark.parametrize(
    "groups, infinite",
    [
        ("[(None, dist.ReduceOp.SUM)]", True),
        ("[(None, dist.ReduceOp.MIN)]", False),  # like every other reduction, not always the sum
        ("[(both, dist.ReduceOp.MAX)]", True),
        ("[(own, dist.ReduceOp.SUM)]", False),  # rank 0 is in another group
        # Groups of the same ranks, one after the other, in another order than they were made.
        ("[(both, dist.ReduceOp.SUM), (None, dist.ReduceOp.SUM), (own, dist.ReduceOp.MIN)]", False),
    ],
)
def test_groups_and_reductions_are_those_recorded(tmp_path, groups, infinite):
    report = replay(record(tmp_path / "one", reductions(groups)), "--rank", "1")
    check_whole(report)
    assert (report["values"]["non_finite_tensors"] > 0) == infinite


def test_fully_sharded_model_and_distributed_tensors(tmp_path):
    body = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

mesh = init_device_mesh("cpu", (2,))
for layer in (model[0], model[2], model):
    fully_shard(layer, mesh=mesh)
weight = distribute_tensor(torch.randn(8, 8), mesh, [Shard(0)])

def more():
    (weight @ weight.redistribute(mesh, [Replicate()])).full_tensor()
"""
    report = replay(record(tmp_path / "one", body, start=WHOLE))
    check_whole(report)
    assert report["same_kernels"] > 0.95


def test_tensor_parallel_model_replays_its_local_operators(tmp_path):
    body = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

mesh = init_device_mesh("cpu", (2,))
parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})

def more():
    pass
"""
    job = record(tmp_path / "one", body, start=WHOLE)
    report = replay(job, "--per-op")
    check_whole(report)
    # All operators ran except Python's wrapper, on the rank's parts of the weights.
    assert {row["op"] for row in report["kernels"]["missing"]} <= {
        "_c10d_functional::_wrap_tensor_autograd"
    }
    rows = {(row["op"], row["phase"]) for row in report["per_operator"]}
    assert ("_c10d_functional::all_reduce", "forward") in rows


def test_a_trace_that_lacks_the_groups_skips_their_collectives(tmp_path):
    """PyTorch's observer has no values of objects."""
    job = record(tmp_path / "one", reductions("[(own, dist.ReduceOp.SUM)]"), "observers")
    report = replay(job, code=1)
    (row,) = report["skipped"]
    assert row["op"] == "c10d::allreduce_" and "lacks the process group" in row["reason"]


ONE_HAS_MORE_GROUPS = """
own = dist.new_group([0])

def more():
    dist.all_reduce(torch.ones(4))
"""


def test_a_group_that_one_rank_is_in_is_said_to_be_why_ranks_do_not_fit(tmp_path):
    """With PyTorch's observer, one of two ranks does not show which group a collective used."""
    job = record(tmp_path / "one", ONE_HAS_MORE_GROUPS, "observers")
    done = two_ranks.run(job, "--ranks", "all")
    assert done.returncode == 3, done.stderr
    assert "rank 0 leaves out 1 communication, first c10d::allreduce_" in done.stderr
    assert "lacks the process group" in done.stderr and "native recorder" in done.stderr


# Rank 1 is later by this time, also on busy machines, because it sleeps when rank 0 is there.
LATER = """
from itertools import count
store, steps = dist.distributed_c10d._get_default_store(), count()

def rank_1_is_later():
    key = f"rank 0 is in step {next(steps)}"
    if rank == 0:
        store.set(key, "")
    else:
        store.wait([key])
        time.sleep(0.1)
"""

WAITS = LATER + """
def more():
    ones = torch.ones(4)
    rank_1_is_later()
    work = dist.all_reduce(ones, async_op=True)
    work.wait()
    ones.add_(1)
    dist.all_reduce(ones)
    time.sleep(0.05)
    ones.add_(1)
"""


def test_waits_for_collectives_are_no_gaps(tmp_path):
    job = record(tmp_path / "one", WAITS)
    early = replay(job)["gaps"]  # rank 0, which waits for rank 1
    late = replay(job, "--rank", "1", "--gaps", "recorded")
    assert early["mode"] == "none" and late["gaps"]["mode"] == "recorded"
    assert early["waits_ms"] > 0.5 * 100 and early["ms"] > 0.5 * 50
    assert late["gaps"]["ms"] > 0.5 * 150
    # Rank 1 slept for longer than rank 0 and waited for less.
    assert late["gaps"]["ms"] > early["ms"] + 0.5 * 100
    assert late["gaps"]["waits_ms"] < early["waits_ms"]
    # The remaining time passes on all ranks.
    for gaps in (early, late["gaps"]):
        assert gaps["with"]["step_ms"]["wall"]["min"] > gaps["ms"]
        assert gaps["without"]["step_ms"]["wall"]["count"] > 0


MESSAGES = LATER + """
def more():
    value = torch.ones(4)
    rank_1_is_later()
    if rank == 0:
        dist.recv(value, 1)
        torch.zeros(3)  # of other memory
        dist.send(value, 1)
    else:
        dist.send(value, 0)
        dist.recv(value, 0)
"""


def test_waits_for_messages_are_no_gaps(tmp_path):
    job = record(tmp_path / "one", MESSAGES)
    early = replay(job)["gaps"]  # rank 0, which waits for rank 1
    late = replay(job, "--rank", "1")["gaps"]
    # They are not used either if the messages are skipped.
    alone = two_ranks.replay(job, "--rank", "0", code=1)["gaps"]
    for gaps in (early, alone):
        assert gaps["waits_ms"] > 0.5 * 100
        assert late["ms"] > gaps["ms"] + 0.5 * 100


def compose(folder, job, part):
    """Returns the nodes of both ranks' captures after a recipe, and their replay."""
    folder.mkdir()
    for rank in (0, 1):
        recipe = folder / "recipe.toml"
        recipe.write_text(f'[traces]\na = {{ path = "{job}", rank = {rank} }}\n[[part]]\ntrace = "a"\n{part}\n')
        subprocess.run([two_ranks.ETUDE, "compose", recipe, "-q", "-o", folder / f"linked.{rank}.json"], check=True)
    names = [node["name"] for node in json.loads((folder / "linked.0.json").read_text())["nodes"]]
    return names, replay(folder)


def test_what_gloo_does_for_a_collective_is_a_part_of_it(tmp_path):
    # It copies the gathered data on a separate thread.
    body = """
parts = [torch.empty(4, 2), torch.empty(4, 2)]
def more():
    dist.all_gather(parts, torch.ones(4, 2))
"""
    job = record(tmp_path / "one", body)
    report = replay(job)
    check_whole(report)
    whole, _ = compose(tmp_path / "all", job, "")
    dropping, dropped = compose(tmp_path / "dropped", job, "drop = { comm = true }")
    scaling, scaled = compose(tmp_path / "scaled", job, "scale_comm = 0.5")
    assert dropped["operators"]["total"] == report["operators"]["total"] - 1
    check_whole(scaled)
    counts = [[names.count(name) for name in ("gloo:all_gather", "aten::copy_")] for names in (whole, dropping, scaling)]
    copies = counts[1][1]  # the program's own
    assert copies < counts[0][1]
    assert counts == [[1, counts[0][1]], [0, copies], [1, copies]]
