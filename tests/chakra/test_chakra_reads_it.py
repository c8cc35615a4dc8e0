"""Chakra's own Python reader (mlc-chakra) reads what `etude convert` writes by default, and finds a graph."""

import graphlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

et_def = pytest.importorskip("chakra.schema.protobuf.et_def_pb2", reason="mlc-chakra is not installed")
protolib = pytest.importorskip("chakra.src.third_party.utils.protolib")

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
SHARED = pathlib.Path(os.environ.get("ETUDE_SHARED_DATA", "absent"))

PAIRS = {
    "mlp": (DATA / "mlp_et.json.gz", DATA / "mlp_kineto.json.gz"),
    "dlrm": (DATA / "cpu/dlrm_et.json.gz", DATA / "cpu/dlrm_kineto.json.gz"),
    "messages": (DATA / "gpu/messages/host.0.json.gz", DATA / "gpu/messages/device.0.json.gz"),
    "graph": (DATA / "gpu/graph/host.0.json.gz", DATA / "gpu/graph/device.0.json.gz"),
    "dlrm8": (SHARED / "gpu/dlrm8/host.0.json.gz", SHARED / "gpu/dlrm8/device.0.json.gz"),
    "gpt2": (SHARED / "chakra/gpt2_syn/host.0.json.gz", SHARED / "chakra/gpt2_syn/device.0.json.gz"),
}


def etude(*args):
    return subprocess.run([ETUDE, *map(str, args)], check=True, capture_output=True, text=True).stdout


def attr(node, name):
    for row in node.attr:
        if row.name == name:
            return getattr(row, row.WhichOneof("value"))
    return None


@pytest.mark.parametrize("name", PAIRS)
def test_default_graph(tmp_path, name):
    host, device = PAIRS[name]
    if not host.exists():
        pytest.skip(f"no recorded trace at {host}")
    linked, path = tmp_path / "linked.json", tmp_path / "chakra.0.et"
    etude("convert", host, device, "-o", path, "--linked", linked)
    expected = json.loads(etude("info", linked, "--json"))["traces"][0]

    nodes = []
    with open(path, "rb") as file:
        metadata = et_def.GlobalMetadata()
        assert protolib.decodeMessage(file, metadata)
        assert attr(metadata, "schema") == expected["schema"]
        while True:
            node = et_def.Node()
            if not protolib.decodeMessage(file, node):
                break
            nodes.append(node)

    assert len(nodes) == expected["nodes"]
    ids = {node.id for node in nodes}
    assert len(ids) == len(nodes)
    deps = {node.id: {*node.ctrl_deps, *node.data_deps} for node in nodes}
    assert set().union(*deps.values()) <= ids, "dangling ids"
    graphlib.TopologicalSorter(deps).prepare()  # raises on a cycle

    kinds = expected["by_kind"]
    gpu = [node for node in nodes if attr(node, "is_cpu_op") is False]
    device_kinds = ("kernel", "memcpy", "memset")
    device_comms = sum(node.type == et_def.COMM_COLL_NODE for node in gpu)
    assert len(gpu) - device_comms == sum(kinds.get(kind, 0) for kind in device_kinds)
    for node in gpu:
        assert node.start_time_micros > 0 and attr(node, "stream") is not None
        assert node.data_deps or node.ctrl_deps
    timed = sum(node.start_time_micros > 0 for node in nodes)
    assert timed == expected["timed_nodes"]

    # The jsonizer of the same package works as well.
    subprocess.run(
        [sys.executable, "-m", "chakra.src.jsonizer.jsonizer",
         "--input_filename", path, "--output_filename", tmp_path / "out.json"],
        check=True,
    )
    assert (tmp_path / "out.json").read_text().count('"name"') >= len(nodes)
