"""etude.open, Trace, Job and their columns."""

import gc
import gzip
import pathlib
import shutil

import numpy
import pytest
from conftest import CAPTURE, DEVICE, HOST, command, node, planted_nodes, tensor, write_trace

import etude


def column(table, name):
    return [table[name][row] for row in range(len(table))]


def test_what_the_nodes_are(planted):
    nodes = planted.nodes
    assert len(planted) == len(nodes) == 7
    assert nodes.names == list(nodes)[: len(nodes.names)] == [*nodes]
    assert column(nodes, "id") == [1, 2, 10, 11, 12, 13, 14]
    assert column(nodes, "name")[2:] == ["aten::mm", "aten::cat", "gemm", "gemm", "aten::relu"]
    assert column(nodes, "kind") == ["process", "thread", "operator", "operator", "kernel", "kernel", "operator"]
    assert column(nodes, "place") == ["host"] * 4 + ["device"] * 2 + ["host"]
    assert column(nodes, "parent") == [None, 0, 1, 2, 3, 3, 1]
    assert column(nodes, "start_ns") == [None, None, 10_000, 11_000, 20_000, 24_001, None]
    assert column(nodes, "duration_ns") == [None, None, 5000, 3000, 4000, 1500, None]
    assert column(nodes, "exclusive_ns") == [None, None, 2000, 3000, 4000, 1500, None]
    assert column(nodes, "rf_id") == [1001, 1002, 1010, 1011, 1012, 1013, 1014]
    assert column(nodes, "tid") == [0, 1, 1, 1, 1, 1, 1]
    assert column(nodes, "seq_id") == column(nodes, "correlation") == column(nodes, "external_id") == [None] * 7
    assert column(nodes, "op_schema")[2:5] == ["aten::mm(...) -> ...", "aten::cat(...) -> ...", None]
    assert column(nodes, "kernel_backend") == [None] * 7


def test_columns_as_lists(planted, linked, empty):
    for trace in (planted, linked, empty):
        for table in (trace.nodes, trace.tensors, trace.tensor_uses):
            for name in table:
                assert table[name].to_list() == column(table, name), name


def test_lanes_are_rows_of_a_table(planted):
    lanes = planted.lanes.to_dicts()
    streams = [lanes[planted.nodes["lane"][row]]["stream"] for row in (3, 4, 5)]
    assert streams == [None, 7, 9]


def test_columns_by_name_and_row(planted):
    nodes = planted.nodes
    assert "start_ns" in nodes and "begin" not in nodes
    with pytest.raises(KeyError, match="begin"):
        nodes["begin"]
    starts = nodes["start_ns"]
    assert (starts.name, starts.meaning, starts.categories, len(starts)) == ("start_ns", "number", None, 7)
    assert starts[-3] == 20_000
    for row in (7, -8, 2**40):
        with pytest.raises(IndexError):
            starts[row]
    with pytest.raises(IndexError):
        starts.category(0)
    names = nodes["name"]
    assert names.meaning == "text" and names.category(names.values[4]) == "gemm"
    assert names.categories[names.values[2]] == "aten::mm"
    with pytest.raises(IndexError):
        names.category(-1)
    assert nodes["kind"].categories[nodes["kind"].values[4]] == "kernel"
    assert nodes["parent"].meaning == "row" and nodes["parent"].categories is None
    assert planted.tensors["shape"].category(planted.tensors["shape"].values[0]) == (2, 3)


def test_values_are_views_of_the_trace(linked):
    nodes = linked.nodes
    for name in nodes:
        values = nodes[name].values
        assert len(values) == len(linked) and not values.flags.writeable
        again = linked.nodes[name].values
        assert values.ctypes.data == again.ctypes.data, name
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0
    assert nodes["id"].values.dtype == numpy.uint64
    assert nodes["start_ns"].values.dtype == numpy.int64
    assert nodes["parent"].values.dtype == nodes["name"].values.dtype == numpy.int32
    assert nodes["kind"].values.dtype == numpy.int8


def test_views_and_columns_outlive_the_trace():
    trace = etude.open(HOST)
    ids, shapes, offsets = trace.nodes["id"].values, trace.tensors["shape"], trace.deps.offsets
    sums = int(ids.sum()), int(offsets.sum()), [shapes[row] for row in range(len(shapes))]
    del trace
    gc.collect()
    etude.open(DEVICE)  # would fit if the memory were free
    assert sums == (int(ids.sum()), int(offsets.sum()), [shapes[row] for row in range(len(shapes))])


def test_unknown_is_masked(planted):
    starts = planted.nodes["start_ns"]
    assert starts.known.tolist() == [False, False, True, True, True, True, False]
    assert starts.known.dtype == bool
    masked = starts.masked()
    assert masked.sum() == 10_000 + 11_000 + 20_000 + 24_001
    assert masked.tolist() == column(planted.nodes, "start_ns")
    assert planted.nodes["parent"].known.tolist() == [False] + [True] * 6
    assert planted.nodes["op_schema"].known.tolist() == [False, False, True, True, False, False, True]
    assert planted.nodes["kind"].known.all()


def test_dependencies(planted):
    deps = planted.deps
    assert len(deps) == 1
    assert deps.offsets.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    assert deps.targets.tolist() == [4]
    assert deps.kinds[0] == "sync"
    assert deps.of(5) == [(4, "sync")] and deps.of(4) == []
    assert not deps.offsets.flags.writeable and deps.offsets.dtype == numpy.int64
    for row in (-1, 7):
        with pytest.raises(IndexError):
            deps.of(row)


def test_dependencies_of_a_trace_without(tmp_path):
    trace = etude.open(HOST)
    assert len(trace.deps) == 0 and trace.deps.offsets.tolist() == [0] * (len(trace) + 1)
    assert trace.deps.of(0) == [] and len(trace.deps.kinds) == 0


def test_tensors_and_their_uses(planted):
    tensors = planted.tensors
    assert column(tensors, "tensor") == [1, 2, 3, 3, 4]
    assert column(tensors, "storage") == [101, 102, 103, 103, 104]
    assert column(tensors, "numel") == [6, 6, 4, 4, 4]
    assert column(tensors, "shape") == [(2, 3), (3, 2), (2, 2), (4,), (4,)]
    assert column(tensors, "strides") == [None] * 5
    assert column(tensors, "device") == ["cpu"] * 5
    assert column(tensors, "type") == ["Tensor(float)"] * 5
    assert tensors["tensor"].values.base is not None and tensors["numel"].values.tolist() == [6, 6, 4, 4, 4]
    uses = planted.tensor_uses
    rows = zip(*(column(uses, name) for name in ("node", "role", "argument", "tensor")))
    assert list(rows) == [
        (2, "input", 0, 0), (2, "input", 1, 1), (2, "output", 0, 2), (3, "input", 0, 3), (3, "input", 0, 4),
    ]  # fmt: skip


def test_lists_in_lists_of_tensors(tmp_path):
    nodes = planted_nodes()
    value, shape, kind = tensor(1, [2])
    for _ in range(40):
        value, shape, kind = [value], [shape], f"GenericList[{kind}]"
    nodes[2]["inputs"] = {"values": [value], "shapes": [shape], "types": [kind]}
    trace = etude.open(write_trace(tmp_path / "deep.json", nodes))
    uses = trace.tensor_uses
    first = [(uses["node"][row], uses["argument"][row], uses["tensor"][row]) for row in range(1)]
    assert first == [(2, 0, 0)] and trace.tensors["tensor"][0] == 1


def test_communication_and_groups(tmp_path):
    facts = [
        ("collective_name", "string", "allreduce"), ("dtype", "string", "Float"), ("in_msg_nelems", "uint64", 8),
        ("out_msg_nelems", "uint64", 8), ("pg_name", "string", "7"), ("pg_size", "uint64", 2),
    ]  # fmt: skip
    nodes = [*planted_nodes(), node(15, "record_param_comms", 2, attrs=facts)]
    groups = [{"pg_name": "7", "pg_desc": "default", "backend_config": "gloo", "pg_size": 2, "ranks": [0, 1]}]
    info = {"rank": 1, "world_size": 2, "pg_config": groups}
    trace = etude.open(write_trace(tmp_path / "comm.json", nodes, distributedInfo=info))
    (row,) = trace.comms.to_dicts()
    assert (row["node"], row["type"], row["group"], row["group_size"]) == (7, "all_reduce", "7", 2)
    assert (row["in_elements"], row["dtype"], row["root"], row["in_split"]) == (8, "float32", None, None)
    assert trace.comms.column_types[:3] == ["integer", "text", "text"]
    (group,) = trace.process_groups.to_dicts()
    assert (group["name"], group["description"], group["ranks"], group["size"]) == ("7", "default", "0, 1", 2)
    assert (trace.rank, trace.info["world_size"]) == (1, 2)


def test_facts_of_a_trace(planted, planted_file):
    info = planted.info
    assert info["path"] == planted.path == str(planted_file)
    assert (info["kind"], info["nodes"], info["dependencies"], info["pid"]) == ("linked", 7, 1, 1)
    assert info["rank"] is None and info["finish_ts"] is None and info["health"] == {}
    assert info["memory_bytes"] > 0
    assert planted.health == {"verdict": "good", "reasons": [], "graph_time": None, "waits": None}
    assert planted.rank is None
    assert repr(planted) == f"<etude.Trace {planted_file}: 7 nodes>"


def test_info_agrees_with_the_command():
    import json

    said = json.loads(command("info", "--json", HOST))["traces"][0]
    info = etude.open(HOST).info
    for key in ("path", "kind", "schema", "rank", "world_size", "nodes", "dependencies"):
        assert info[key] == said[key], key


def test_the_empty_trace(empty):
    assert len(empty) == 0 and len(empty.deps) == 0 and len(empty.tensors) == len(empty.tensor_uses) == 0
    for name in empty.nodes:
        assert empty.nodes[name].values.tolist() == [] and empty.nodes[name].known.tolist() == []
        assert empty.nodes[name].masked().tolist() == []
    assert empty.deps.offsets.tolist() == [0]
    assert empty.lanes.to_dicts() == empty.comms.to_dicts() == empty.process_groups.to_dicts() == []


def test_a_folder_is_a_job():
    job = etude.open(CAPTURE)
    assert isinstance(job, etude.Job)
    assert job.ranks == list(job) == [0] and len(job) == 1 and 0 in job and 1 not in job
    assert job[0].rank == 0 and len(job[0]) == len(job.traces[0]) > 0
    assert job.path == str(CAPTURE) and repr(job) == f"<etude.Job {CAPTURE}: 1 rank>"
    with pytest.raises(KeyError, match="no rank 1"):
        job[1]


def test_ranks_of_a_job_are_in_order(tmp_path):
    for rank in (10, 2, 0):
        shutil.copy(HOST, tmp_path / f"host.{rank}.json.gz")
    shutil.copy(DEVICE, tmp_path / "device.2.json.gz")
    job = etude.open(tmp_path, jobs=2)
    assert job.ranks == [0, 2, 10] and [trace.rank for trace in job.traces] == [0, 2, 10]
    assert job[2].info["kind"] == "linked" and job[0].info["kind"] == "pytorch-et"
    assert None not in job and "<etude.Trace " in repr(job[10]) and repr(job[10]).endswith(", rank 10>")


def test_the_only_trace_of_a_folder_may_have_no_rank(tmp_path):
    shutil.copy(HOST, tmp_path / "trace.json.gz")
    job = etude.open(tmp_path)
    assert job.ranks == [None] and None in job and 0 not in job
    assert job[None].rank is None and len(job[None]) == 224


@pytest.mark.parametrize("make", [str, pathlib.Path, lambda path: str(path).encode()])
def test_paths_of_all_kinds(make):
    assert len(etude.open(make(HOST))) == 224


def test_a_trace_that_is_compressed_or_not(tmp_path):
    plain = tmp_path / "trace with spaces und Ümlaut 测试.json"
    plain.write_bytes(gzip.decompress(HOST.read_bytes()))
    trace = etude.open(plain)
    assert trace.nodes["id"].values.tolist() == etude.open(HOST).nodes["id"].values.tolist()
    assert trace.path == str(plain)
