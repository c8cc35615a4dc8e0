"""Traces and tables in pandas, Arrow and networkx."""

import pandas
import pyarrow
import pytest
from conftest import CAPTURE, HOST, write_trace

import etude


def none_for_missing(frame):
    """Returns the values of each column, with None for missing ones."""
    return {name: [None if pandas.isna(v) else v for v in frame[name]] for name in frame}


def in_python(table):
    return {name: [table[name][row] for row in range(len(table))] for name in table}


def test_pandas_has_the_same_values(planted):
    frame = planted.to_pandas()
    assert none_for_missing(frame) == in_python(planted.nodes)
    assert frame.index.name == "row" and list(frame.index) == list(range(7))
    assert str(frame["start_ns"].dtype) == "Int64" and str(frame["id"].dtype) == "UInt64"
    assert isinstance(frame["name"].dtype, pandas.CategoricalDtype)
    assert frame["start_ns"].isna().sum() == 3 and frame["duration_ns"].sum() == 13_500
    assert frame.groupby("name", observed=True)["duration_ns"].sum()["gemm"] == 5500


def test_pandas_owns_its_values(planted):
    frame = planted.to_pandas()
    frame.loc[2, "start_ns"] = 0
    assert planted.nodes["start_ns"][2] == 10_000


def test_pandas_of_recorded_traces(linked):
    assert none_for_missing(linked.to_pandas()) == in_python(linked.nodes)
    uses = linked.tensor_uses
    assert none_for_missing(uses.to_pandas()) == in_python(uses)
    shapes = linked.tensors.to_pandas()["shape"]
    assert list(shapes) == [linked.tensors["shape"][row] for row in range(len(shapes))]


def test_dependencies_in_pandas(planted):
    frame = planted.deps.to_pandas()
    assert frame.to_dict("records") == [{"node": 5, "target": 4, "kind": "sync"}]


def test_columns_in_pandas(planted):
    series = planted.nodes["duration_ns"].to_pandas()
    assert series.name == "duration_ns" and series.isna().tolist() == [True, True, False, False, False, False, True]
    assert list(planted.tensors["strides"].to_pandas()) == [None] * 5


def test_tables_in_pandas(planted):
    frame = etude.stats(planted)["ops"].to_pandas()
    row = frame.set_index("name").loc["gemm"]
    assert (row["count"], row["total_ns"]) == (2, 5500)
    assert str(frame["count"].dtype) == "Int64"
    relu = frame.set_index("name").loc["aten::relu"]
    assert relu["total_ns"] is pandas.NA


def test_arrow_has_the_same_values(planted):
    table = planted.to_arrow()
    table.validate(full=True)
    assert table.to_pydict() == in_python(planted.nodes)
    assert table.schema.field("start_ns").type == pyarrow.int64()
    assert table.schema.field("id").type == pyarrow.uint64()
    assert table.schema.field("name").type == pyarrow.dictionary(pyarrow.int32(), pyarrow.large_utf8())
    assert table["start_ns"].null_count == 3 and table["parent"].null_count == 1


def test_arrow_of_recorded_traces(linked):
    for columns in (linked.nodes, linked.tensors, linked.tensor_uses):
        table = columns.to_arrow()
        table.validate(full=True)
        expected = in_python(columns)
        lists = {name: [None if v is None else list(v) for v in expected[name]] for name in ("shape", "strides")
                 if name in expected}  # fmt: skip
        assert table.to_pydict() == {**expected, **lists}


def test_arrow_lies_in_the_trace(planted):
    names = ("id", "start_ns", "name", "kind", "parent")
    for name in names:
        array = planted.nodes[name].to_arrow()
        values = array.indices if pyarrow.types.is_dictionary(array.type) else array
        assert values.buffers()[1].address == planted.nodes[name].values.ctypes.data, name
    table = planted.to_arrow()
    assert table["id"].chunk(0).buffers()[1].address == planted.nodes["id"].values.ctypes.data


def test_arrow_outlives_the_trace():
    table = etude.open(HOST).to_arrow()
    strings = etude.open(HOST).nodes["name"].to_arrow()
    again = etude.open(HOST)
    assert table.to_pydict() == in_python(again.nodes)
    assert strings.to_pylist() == in_python(again.nodes)["name"]


def test_arrow_in_parts(linked):
    nodes = linked.to_arrow()
    part = nodes.slice(37, 50)
    expected = in_python(linked.nodes)
    assert part.to_pydict() == {name: expected[name][37:87] for name in expected}
    starts = linked.nodes["start_ns"].to_arrow()[63:130]
    assert starts.to_pylist() == expected["start_ns"][63:130]
    assert starts.null_count == expected["start_ns"][63:130].count(None)
    assert linked.nodes["name"].to_arrow()[5:9].to_pylist() == expected["name"][5:9]


def test_arrow_and_back_through_a_file(linked, tmp_path):
    table = linked.to_arrow()
    with pyarrow.ipc.new_file(tmp_path / "nodes.arrow", table.schema) as writer:
        writer.write_table(table)
    with pyarrow.ipc.open_file(tmp_path / "nodes.arrow") as reader:
        assert reader.read_all() == table


def test_arrow_dependencies(planted):
    array = planted.deps.to_arrow()
    array.validate(full=True)
    assert array.to_pylist() == [[]] * 5 + [[{"target": 4, "kind": "sync"}]] + [[]]


def test_arrow_interfaces(planted):
    nodes = planted.nodes
    batch = pyarrow.record_batch(nodes)
    assert batch.to_pydict() == in_python(nodes)
    assert pyarrow.RecordBatchReader.from_stream(nodes).read_all().to_pydict() == in_python(nodes)
    assert pyarrow.schema(nodes) == planted.to_arrow().schema
    assert pyarrow.array(nodes["kind"]).to_pylist() == in_python(nodes)["kind"]
    # Arrays without an owner are released.
    for thing in (nodes, nodes["name"], nodes["start_ns"], planted.tensors["shape"], planted.deps):
        thing.__arrow_c_schema__()
        thing.__arrow_c_array__()
    nodes.__arrow_c_stream__()


def test_arrow_to_pandas_agrees(planted):
    frame = planted.to_arrow().to_pandas(types_mapper={pyarrow.int64(): pandas.Int64Dtype()}.get)
    assert none_for_missing(frame) == none_for_missing(planted.to_pandas())


def test_the_empty_trace(empty):
    table = empty.to_arrow()
    table.validate(full=True)
    assert table.num_rows == 0 and table.column_names == empty.nodes.names
    assert empty.tensors.to_arrow().num_rows == empty.tensor_uses.to_arrow().num_rows == 0
    assert empty.deps.to_arrow().to_pylist() == []
    assert len(empty.to_pandas()) == len(empty.tensors.to_pandas()) == len(empty.deps.to_pandas()) == 0
    assert list(empty.to_pandas()) == empty.nodes.names
    assert len(empty.to_networkx()) == 0


def test_networkx(planted):
    graph = planted.to_networkx()
    assert set(graph) == set(range(7))
    assert sorted(graph.edges(data="kind")) == [
        (0, 1, "call"), (1, 2, "call"), (1, 6, "call"), (2, 3, "call"), (3, 4, "call"), (3, 5, "call"), (4, 5, "sync"),
    ]  # fmt: skip
    assert graph.nodes[4] == {
        "name": "gemm", "kind": "kernel", "place": "device", "lane": 3, "start_ns": 20_000,
        "duration_ns": 4000, "exclusive_ns": 4000,
    }  # fmt: skip
    assert "start_ns" not in graph.nodes[6]


def test_networkx_of_recorded_traces(linked):
    graph = linked.to_networkx()
    parents = linked.nodes["parent"]
    assert len(graph) == len(linked)
    assert graph.number_of_edges() == len(linked.deps) + int(parents.known.sum())


def test_strings_that_are_no_utf8(tmp_path):
    path = write_trace(tmp_path / "bad.json", [{"id": 1, "name": "X", "ctrl_deps": 1, "attrs": []}])
    path.write_bytes(path.read_bytes().replace(b'"X"', b'"a\\u0000b\xff\xc3\\ud800c"'))
    trace = etude.open(path)
    name = trace.nodes["name"][0]
    assert name.startswith("a\0b�") and name.endswith("c")
    name.encode()
    assert trace.to_arrow()["name"].to_pylist() == trace.to_pandas()["name"].tolist() == [name]
    trace.to_arrow().validate(full=True)
    assert trace.to_networkx().nodes[0]["name"] == name
    assert etude.stats(trace)["ops"].to_dicts()[0]["name"] == name
    str(etude.stats(trace)), etude.stats(trace)["ops"].to_csv()


def test_a_library_that_is_missing(planted, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(etude.Error, match="missing module pandas: pip install pandas") as error:
        planted.to_pandas()
    assert error.value.code == "unavailable"
    assert len(etude.open(CAPTURE)) == 1
