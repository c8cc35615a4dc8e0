"""Traces and tables as data frames and graphs of other libraries, which are imported on demand."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import Error

if TYPE_CHECKING:
    from ._core import Column, Columns, Dependencies, Table, Trace

NODE_FACTS = ("name", "kind", "place", "lane", "start_ns", "duration_ns", "exclusive_ns")


def library(name: str) -> Any:
    """Imports a library; raises etude.Error with instructions if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Error("unavailable", f"missing module {name}: pip install {name}") from error


def masked(column: Column) -> Any:
    return library("numpy").ma.MaskedArray(column.values, mask=~column.known)


def column_to_list(column: Column) -> list[Any]:
    numpy = library("numpy")
    values = column.values
    if column.meaning in ("number", "row"):
        known = column.known
        return [v if k else None for v, k in zip(values.tolist(), known.tolist())]
    used, codes = numpy.unique(values, return_inverse=True)
    meant = [column.category(code) if code >= 0 else None for code in used.tolist()]
    return [meant[code] for code in codes.reshape(-1).tolist()]


def array_to_arrow(array: Any) -> Any:
    return library("pyarrow").array(array)


def table_to_arrow(table: Any) -> Any:
    return library("pyarrow").table(table)


def trace_to_arrow(trace: Trace) -> Any:
    return table_to_arrow(trace.nodes)


def column_to_pandas(column: Column) -> Any:
    pandas, numpy = library("pandas"), library("numpy")
    values = column.values
    if column.meaning in ("text", "name"):
        used, codes = numpy.unique(values, return_inverse=True)
        # -1 (no text) is sorted first.
        missing = int(used.size > 0 and used[0] < 0)
        texts = [column.category(int(code)) for code in used[missing:]]
        data = pandas.Categorical.from_codes(codes.reshape(-1) - missing, texts)
    elif column.meaning == "list":
        data = numpy.empty(len(column), dtype=object)
        data[:] = column_to_list(column)
    else:
        data = pandas.arrays.IntegerArray(values.copy(), ~column.known)
    return pandas.Series(data, name=column.name)


def columns_to_pandas(columns: Columns) -> Any:
    return library("pandas").DataFrame({name: column_to_pandas(columns[name]) for name in columns})


def trace_to_pandas(trace: Trace) -> Any:
    frame = columns_to_pandas(trace.nodes)
    frame.index.name = "row"
    return frame


def dependencies_to_pandas(deps: Dependencies) -> Any:
    pandas, numpy = library("pandas"), library("numpy")
    counts = numpy.diff(deps.offsets)
    return pandas.DataFrame(
        {
            "node": numpy.repeat(numpy.arange(counts.size, dtype=numpy.int32), counts),
            "target": deps.targets.copy(),
            "kind": column_to_pandas(deps.kinds),
        }
    )


def trace_to_networkx(trace: Trace) -> Any:
    graph = library("networkx").MultiDiGraph()
    numpy = library("numpy")
    nodes, deps = trace.nodes, trace.deps
    facts = zip(*(column_to_list(nodes[name]) for name in NODE_FACTS))
    graph.add_nodes_from(
        (row, {name: value for name, value in zip(NODE_FACTS, values) if value is not None})
        for row, values in enumerate(facts)
    )
    parents = enumerate(nodes["parent"].values.tolist())
    graph.add_edges_from((parent, row, {"kind": "call"}) for row, parent in parents if parent >= 0)
    waiting = numpy.repeat(numpy.arange(len(trace)), numpy.diff(deps.offsets)).tolist()
    kinds = column_to_list(deps.kinds)
    graph.add_edges_from(
        (target, row, {"kind": kind}) for target, row, kind in zip(deps.targets.tolist(), waiting, kinds)
    )
    return graph


def table_to_pandas(table: Table) -> Any:
    pandas = library("pandas")
    rows = table.to_dicts()
    dtypes = {"text": "object", "integer": "Int64", "number": "Float64"}
    return pandas.DataFrame(
        {
            key: pandas.Series([row[key] for row in rows], dtype=dtypes[kind])
            for key, kind in zip(table.columns, table.column_types)
        }
    )
