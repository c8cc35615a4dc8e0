"""Traces and tables as data frames and graphs of other libraries, which are imported when asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import Error

if TYPE_CHECKING:
    from ._core import Column, Columns, Dependencies, Table, Trace

NODE_FACTS = ("name", "kind", "place", "lane", "start_ns", "duration_ns", "exclusive_ns")


def library(name: str) -> Any:
    """The library of this name, or etude.Error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Error("unavailable", f"found no {name}, expected it installed: pip install {name}") from error


def masked(column: Column) -> Any:
    return library("numpy").ma.MaskedArray(column.values, mask=~column.known)


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
        # -1, where there is no text, sorts first.
        missing = int(used.size > 0 and used[0] < 0)
        texts = [column.category(int(code)) for code in used[missing:]]
        data = pandas.Categorical.from_codes(codes.reshape(-1) - missing, texts)
    elif column.meaning == "list":
        data = numpy.fromiter((column[i] for i in range(len(column))), dtype=object, count=len(column))
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
    nodes = trace.nodes
    columns = [(fact, nodes[fact]) for fact in NODE_FACTS]
    for row in range(len(trace)):
        facts = ((fact, column[row]) for fact, column in columns)
        graph.add_node(row, **{fact: value for fact, value in facts if value is not None})
    for row, parent in enumerate(nodes["parent"].values.tolist()):
        if parent >= 0:
            graph.add_edge(parent, row, kind="call")
    deps = trace.deps
    for row in range(len(trace)):
        for target, kind in deps.of(row):
            graph.add_edge(target, row, kind=kind)
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
