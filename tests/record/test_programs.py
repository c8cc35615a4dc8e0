"""The native recorder with features of real programs: compilers, sharding, several optimizers, changing shapes."""

import json
import os
import pathlib
import statistics
import shutil
import subprocess
import sys

import pytest
from conftest import SETUP, TWO_RANKS
from forked_python import END_OF_RANK

BIN = pathlib.Path(os.environ["ETUDE_BIN"])


class Recorded:
    def __init__(self, folder, done):
        self.folder = folder
        self.code, self.err = done.returncode, done.stderr

    def rank(self, rank=0):
        return json.loads((self.folder / "job.json").read_text())["ranks"][str(rank)]

    def nodes(self, rank=0):
        target = self.folder.parent / f"linked.{rank}.json"
        etude("convert", "-q", self.folder / f"capture.{rank}.etude", "-o", target)
        return json.loads(target.read_text())["nodes"]

    def names(self, rank=0):
        return [node["name"] for node in self.nodes(rank)]


def etude(*arguments, code=0):
    done = subprocess.run([BIN / "etude", *map(str, arguments)], capture_output=True, text=True, timeout=180)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def record(tmp_path):
    def run(source, *options, launcher=(sys.executable,), ranks=1, environment=None):
        script = tmp_path / "program.py"
        script.write_text(source)
        values = {key: value for key, value in os.environ.items() if not key.startswith("ETUDE_")}
        values.update(OMP_NUM_THREADS="1", TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"))
        values.update(environment or {})
        done = subprocess.run(
            [BIN / "etude", "record", "--recorder", "native", "--warmup", "2", "--steps", "3", *options,
             "-o", tmp_path / "capture", "--", *launcher, script],
            capture_output=True, text=True, timeout=240, env=values,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        recorded = Recorded(tmp_path / "capture", done)
        for rank in range(ranks):
            etude("validate", "--strict", recorded.folder / f"capture.{rank}.etude")
        return recorded

    return run


COMPILED = SETUP + """
model.append(nn.GELU())
compiled = torch.compile(model, backend=sys.argv[1] if len(sys.argv) > 1 else "inductor")
for _ in range(12):
    optimizer.zero_grad()
    compiled(torch.randn(5, 8)).sum().backward()
    optimizer.step()
"""
KERNEL_PROFILE = "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"


def test_compiled_with_aot_eager(record):
    recorded = record(COMPILED.replace('"inductor"', '"aot_eager"'))
    names = recorded.names()
    assert any(name.startswith("Torch-Compiled Region") for name in names)
    assert "aten::gelu" in names and "aten::addmm" in names
    assert not any("torch.compile" in note for note in recorded.rank()["notes"])
    assert "compiled_kernels" not in recorded.rank()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="no C++ compiler")
def test_compiled_with_inductor(record):
    recorded = record(COMPILED)
    names = recorded.names()
    # Regions and the called operators. Fused code is a kernel without details.
    assert any(name.startswith("Torch-Compiled Region") for name in names)
    assert "aten::addmm" in names and "aten::gelu" not in names
    assert not any("fused" in name for name in names)
    assert any(KERNEL_PROFILE in note for note in recorded.rank()["notes"])
    assert recorded.rank()["compiled_kernels"] is True
    # Work of kernels is not replayed, and this is reported.
    report = json.loads(etude("replay", recorded.folder, "--json", "--iterations", 2, code=1))
    regions = [row for row in report["skipped"] if row["op"] == "Torch-Compiled Region"]
    assert regions and regions[0]["time_share"] > 0
    assert report["coverage"]["ops"] < 1 and report["coverage"]["time"] < 1
    assert any(KERNEL_PROFILE in note for note in report["notes"])
    shutil.rmtree(recorded.folder)
    told = record(COMPILED, environment={KERNEL_PROFILE: "1"})
    kernels = [node for node in told.nodes() if "_fused_" in node["name"]]
    assert kernels and all(node["inclusive_dur"] > 0 for node in kernels)
    assert all(node["inputs"]["shapes"] == [] for node in kernels)
    assert told.rank()["state"]["environment"][KERNEL_PROFILE] == "1"
    assert not any("torch.compile" in note for note in told.rank()["notes"])


def test_eager(record):
    recorded = record(COMPILED, "--eager")
    names = recorded.names()
    assert not any(name.startswith("Torch-Compiled Region") for name in names)
    assert "aten::gelu" in names
    rank = recorded.rank()
    assert rank["state"]["environment"]["TORCH_COMPILE_DISABLE"] == "1"
    assert any("torch.compile was disabled" in note for note in rank["notes"])
    assert "torch.compile was disabled" in recorded.err


def test_several_optimizers(record):
    recorded = record(
        SETUP
        + """
other = torch.optim.Adam(model[2].parameters())
for _ in range(14):
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(5, 8)).sum().backward()
        optimizer.step()
    other.zero_grad()
    model(torch.randn(5, 8)).pow(2).sum().backward()
    other.step()
"""
    )
    names = recorded.names()
    assert recorded.rank()["step_pattern"] == ["SGD", "SGD", "SGD", "Adam"]
    assert names.count("Optimizer.step#SGD.step") == 3 and names.count("Optimizer.step#Adam.step") == 1


def test_shapes_that_change(record):
    recorded = record(
        SETUP
        + """
for step in range(40):
    train(5 + step % 3 if step % 4 else 5)
"""
    )
    rank = recorded.rank()
    assert len(rank["signatures"]) == 3
    (taken,) = [signature for signature in rank["signatures"] if signature["recorded"]]
    # The kind with the most time in the timed steps before.
    times = {}
    for step in rank["timed_steps"]:
        if step["index"] < rank["recorded_step"]["index"]:
            times.setdefault(step["signature"], []).append(step["wall_ns"])
    of_kinds = {kind: len(of_kind) * statistics.median(of_kind) for kind, of_kind in times.items()}
    assert taken["id"] == max(of_kinds, key=of_kinds.get)
    batch = int(taken["description"].split("f32[")[1].split(",")[0])
    adds = [node for node in recorded.nodes() if node["name"] == "aten::addmm"]
    assert {node["inputs"]["shapes"][1][0] for node in adds} == {batch}


def test_several_kinds_are_one_mix(record):
    recorded = record(
        SETUP
        + """
for step in range(60):
    train([5, 5, 64, 5, 7, 64][step % 6])
""",
        "--kinds",
        "auto",
    )
    rank = recorded.rank()
    kinds = rank["recorded_step"]["signatures"]
    assert len(kinds) == rank["recorded_step"]["steps"] > 1
    assert {one["id"] for one in rank["signatures"] if one["recorded"]} == set(kinds)
    replay = json.loads(etude("replay", recorded.folder, "--json", "--warmup", "1", "--iterations", "2"))
    shares = {one["step"]: one["step_share"] for one in replay["step_kinds"]}
    timed = [step for step in rank["timed_steps"] if step["signature"] in kinds]
    for step, share in shares.items():
        of_kind = sum(one["signature"] == kinds[step] for one in timed)
        assert share == pytest.approx(of_kind / len(timed))
    mean = sum(step["wall_ns"] for step in timed) / len(timed) / 1e6
    assert replay["original"]["step_ms"]["wall"]["median"] == pytest.approx(mean, rel=1e-3)


def test_the_share_of_the_recorded_kind_is_said(record):
    recorded = record(SETUP + "for step in range(40): train(5 if step % 4 else 300)")
    rank = recorded.rank()
    (taken,) = [one for one in rank["signatures"] if one["recorded"]]
    seen = sum(one["seen"] for one in rank["signatures"])
    (note,) = [note for note in rank["notes"] if "kinds of steps were seen" in note]
    assert note.startswith(f"the recorded kind is {taken['seen']} of {seen} steps and ")
    assert note.endswith("; 2 kinds of steps were seen")


@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpointing(record, reentrant):
    recorded = record(
        SETUP
        + f"""
from torch.utils.checkpoint import checkpoint
for _ in range(12):
    optimizer.zero_grad()
    x = torch.randn(5, 8, requires_grad=True)
    checkpoint(model, x, use_reentrant={reentrant}).sum().backward()
    optimizer.step()
"""
    )
    names = recorded.names()
    # Forward, and again in the backward pass.
    assert names.count("aten::addmm") == 4
    assert "(100.0 %)" in etude("replay", "--iterations", 2, recorded.folder)


SHARDED = SETUP + """
light_torch.load()
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
"""


def test_fsdp2(record):
    recorded = record(
        SHARDED
        + """
from torch.distributed.fsdp import fully_shard
for layer in (model[0], model[2]):
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12): train()
"""
        + END_OF_RANK,
        launcher=(sys.executable, *TWO_RANKS), ranks=2,
    )  # fmt: skip
    for rank in range(2):
        names = recorded.names(rank)
        assert any("allgather" in name.replace("_", "") for name in names)
        assert any("reducescatter" in name.replace("_", "") for name in names)
        assert "aten::addmm" in names
    kinds = {row["type"] for row in json.loads(etude("stats", "--json", recorded.folder))["communication"]}
    assert any("gather" in kind for kind in kinds) and any("reduce" in kind for kind in kinds)


def test_ranks_record_the_same_kinds(record):
    recorded = record(
        SHARDED
        + """
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    train([5, 64][step % 2])
"""
        + END_OF_RANK,
        "--kinds", "2", launcher=(sys.executable, *TWO_RANKS), ranks=2,
    )  # fmt: skip
    first, second = (recorded.rank(rank)["recorded_step"] for rank in range(2))
    assert len(set(first["signatures"])) == 2 and first["signatures"] == second["signatures"]
    assert first["index"] == second["index"]
    report = json.loads(
        etude("replay", recorded.folder, "--ranks", "all", "--json", "--warmup", "1", "--iterations", "2")
    )
    assert report["coverage"]["ops"] == 1


def test_dtensor(record):
    recorded = record(
        SHARDED
        + """
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    torch.manual_seed(1)
    train()
"""
        + END_OF_RANK,
        launcher=(sys.executable, *TWO_RANKS), ranks=2,
    )  # fmt: skip
    nodes = recorded.nodes(0)
    # Work is on the shards: half of the sixteen features in the middle.
    shapes = [node["inputs"]["shapes"] for node in nodes if node["name"] in ("aten::addmm", "aten::mm")]
    assert any([8, 8] in of_node or [5, 8] in of_node for of_node in shapes)
    assert any("allreduce" in node["name"].replace("_", "") for node in nodes)


def test_sums_of_jagged_lengths_tell_steps_apart(record):
    recorded = record(
        """
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters())
for i in range(40):
    rows = [torch.randn(3 + i % 2, 8), torch.randn(5 - i % 2, 8)]
    model(torch.nested.nested_tensor(rows, layout=torch.jagged)).values().sum().backward()
    optimizer.step()
"""
    )
    (signature,) = recorded.rank()["signatures"]
    assert "f32[2,j8,8]" in signature["description"]
