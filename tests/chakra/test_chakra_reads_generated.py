"""Chakra's own Python reader (mlc-chakra) reads every rank of generated jobs, and finds consistent graphs."""

import collections
import graphlib
import json
import os
import pathlib
import subprocess

import pytest

et_def = pytest.importorskip("chakra.schema.protobuf.et_def_pb2", reason="mlc-chakra is not installed")
protolib = pytest.importorskip("chakra.src.third_party.utils.protolib")

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")

DENSE = """[model]
layers = 4
hidden = 64
heads = 4
ffn = 256
vocabulary = 1000
sequence = 32
"""
EXPERTS = """preset = "mixtral-8x7b"
[model]
layers = 2
sequence = 64
hidden = 128
heads = 8
head_size = 16
[experts]
ffn = 64
"""
TABLES = """[dlrm]
dense = 16
bottom = [64, 32]
top = [64, 1]
[[tables]]
count = 3
rows = 100
dimension = 32
[[tables]]
rows = 20000
dimension = 32
[[tables]]
count = 2
rows = 4000
dimension = 32
"""
LAYERS = """[[layer]]
name = "image"
type = "input"
shape = [3, 32, 32]
[[layer]]
name = "conv"
type = "conv"
channels = 16
kernel = 3
[[layer]]
name = "norm"
type = "batch_norm"
[[layer]]
name = "mean"
type = "global_pool"
[[layer]]
name = "classes"
type = "linear"
channels = 10
[[layer]]
name = "loss"
type = "cross_entropy"
"""
TEXT = "HYBRID_DATA_MODEL\n2\nconv -1 100 ALLREDUCE 64 90 ALLREDUCE 64 80 ALLREDUCE 4096 1\nfc -1 50 ALLTOALL 64 40 NONE 0 30 ALLREDUCE 1024 1\n"
STAGE = "--num_stacks 2 --batch 8 --micro_batch 4 --seq 64 --dmodel 128 --dff 512 --head 8 --kvhead 2 --dvocal 100"

JOBS = {
    "dense": "generate llm dense.toml -o job/step --tp 2 --dp 2 --pp 2 --micro-batches 4 --schedule zero-bubble --zero 1",
    "sharded": "generate llm dense.toml -o job/step --cp 2 --dp 2 --zero 3 --recompute full --sequences 2",
    "experts": "generate llm experts.toml -o job/step --tp 2 --dp 4 --ep 2",
    "decode": "generate llm dense.toml -o job/step --phase decode --tp 2 --pp 2 --micro-batches 2 --tokens 2 --cached 8",
    "prefill": "generate moe experts.toml -o job/step --phase prefill --dp 2 --ep 2 --memory",
    "dlrm": "generate dlrm tables.toml -o job/step --dp 4 --batch 64 --replicate-tables 16KiB --split-rows 1MiB --optimizer adagrad",
    "lookups": "generate dlrm tables.toml -o job/step --dp 2 --batch 64 --phase inference",
    "cnn": "generate cnn layers.toml -o job/step --dp 2 --batch 8 --micro-batches 2 --zero 3 --memory",
    "images": "generate cnn layers.toml -o job/step --dp 2 --batch 8 --phase inference",
    "diffusion": "generate diffusion ddpm-cifar10 -o job/step --dp 2 --zero 1",
    "sampling": "generate diffusion ddpm-cifar10 -o job/step --phase sampling --steps 2",
    "classes": "generate llm dense.toml -o job/step --tp 2 --dp 2 --pp 2 --micro-batches 2",
    "text": "generate text model.txt -o job/model --ranks 4 --count 2",
    **{
        pattern: f"generate microbench {pattern} -o job/bench --ranks 4 --size 64KiB --count 2"
        for pattern in ("all_gather", "broadcast", "pairs", "mem_load", "overlap")
    },
    "gpt": f"compat stage --output_dir job --output_name gpt --model_type gpt --dp 2 --tp 2 --pp 2 {STAGE}",
    "llama": f"compat stage --output_dir job --output_name llama --model_type llama --mixed_precision true --sp 2 --dp 2 --weight_sharded true {STAGE}",
    "moe": f"compat stage --output_dir job --output_name moe --model_type moe --ep 2 --experts 4 {STAGE}",
}

UNSAID = {"all_gather", "broadcast", "pairs", "mem_load", "overlap", "gpt", "llama", "moe"}  # without stated parts


def etude(cwd, *args):
    done = subprocess.run([ETUDE, *map(str, args)], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout


def read(path):
    """Returns the metadata and the nodes of a trace."""
    with open(path, "rb") as file:
        metadata = et_def.GlobalMetadata()
        assert protolib.decodeMessage(file, metadata)
        nodes = []
        while True:
            node = et_def.Node()
            if not protolib.decodeMessage(file, node):
                assert file.tell() == path.stat().st_size
                return metadata, nodes
            nodes.append(node)


def attrs(node):
    names = [row.name for row in node.attr]
    assert len(set(names)) == len(names), f"{node.name}: {names}"
    return {row.name: getattr(row, row.WhichOneof("value")) for row in node.attr if row.WhichOneof("value")}


def expand(folder, count):
    """Writes the ranks of a job in classes as separate files."""
    for rank in range(count):
        etude(folder, "convert", f"whole/rank.{rank}.et", "-o", f"job/step.{rank}.et")


@pytest.mark.parametrize("name", JOBS)
def test_generated_job(tmp_path, name):
    (tmp_path / "dense.toml").write_text(DENSE)
    (tmp_path / "experts.toml").write_text(EXPERTS)
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "layers.toml").write_text(LAYERS)
    (tmp_path / "model.txt").write_text(TEXT)
    etude(tmp_path, *JOBS[name].split())
    folder = tmp_path / "job"
    paths = {int(path.suffixes[-2][1:]): path for path in folder.glob("*.et")}
    ranks = range(len(paths))
    assert sorted(paths) == list(ranks)
    if name == "classes":
        # The same job as a whole. Only its groups come from the files of the other form.
        etude(tmp_path, *JOBS[name].replace("job/step", "whole").split(), "--to", "classes")
        for path in paths.values():
            path.unlink()
        expand(tmp_path, len(paths))
    group_files = list(folder.glob("*.json"))
    groups = json.loads(group_files[0].read_text()) if group_files else {}
    known = {et_def.COMP_NODE, et_def.COMM_COLL_NODE, et_def.COMM_SEND_NODE, et_def.COMM_RECV_NODE}
    known |= {et_def.MEM_LOAD_NODE, et_def.MEM_STORE_NODE}
    collectives = collections.defaultdict(dict)  # of each group: by rank, what it calls
    sent, received = collections.Counter(), collections.Counter()
    for rank, path in paths.items():
        metadata, nodes = read(path)
        said = {row.name: row.string_val for row in metadata.attr}
        if name not in UNSAID:
            # Every node belongs to a phase of a step.
            parts = json.loads(said["json:etude_parts"])
            assert [id for *_, first, last in parts for id in range(first, last + 1)] == [node.id for node in nodes]
        info = json.loads(etude(tmp_path, "info", path, "--json"))["traces"][0]
        assert len(nodes) == info["nodes"] > 0
        deps = {node.id: {*node.data_deps, *node.ctrl_deps} for node in nodes}
        assert len(deps) == len(nodes)
        assert set().union(*deps.values()) <= set(deps), "dangling ids"
        graphlib.TopologicalSorter(deps).prepare()  # raises on a cycle
        for node in nodes:
            assert node.type in known and node.name
            found = attrs(node)
            if node.type == et_def.COMM_COLL_NODE:
                assert found["comm_type"] in et_def.CollectiveCommType.values() and found["comm_size"] > 0
                group = found.get("pg_name", "")
                members = groups[group] if group else list(ranks)
                assert rank in members and len(members) > 1
                calls = collectives[group].setdefault(rank, collections.Counter())
                calls[found["comm_type"], found["comm_size"]] += 1
            elif node.type == et_def.COMM_SEND_NODE:
                assert found["comm_size"] > 0
                sent[rank, found["comm_dst"], found["comm_tag"], found["comm_size"]] += 1
            elif node.type == et_def.COMM_RECV_NODE:
                received[found["comm_src"], rank, found["comm_tag"], found["comm_size"]] += 1
            elif node.type == et_def.COMP_NODE:
                if "num_ops" in found:
                    assert found["num_ops"] > 0 and found["tensor_size"] > 0
                else:
                    assert node.duration_micros > 0 or name == "broadcast"
    assert sent == received
    for group, calls in collectives.items():
        assert sorted(calls) == (groups[group] if group else list(ranks))
        assert all(one == calls[min(calls)] for one in calls.values()), group
