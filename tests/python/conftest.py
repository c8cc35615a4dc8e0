"""Traces for the tests of the Python module: recorded ones, and a synthetic one."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
import own_state  # noqa: E402, F401

DATA = TESTS / "data"
HOST = DATA / "mlp_et.json.gz"
DEVICE = DATA / "mlp_kineto.json.gz"
CAPTURE = DATA / "capture"
TOOL = pathlib.Path(os.environ["ETUDE_BIN"]) / "etude"


def command(*arguments, code=0):
    """Returns the output of `etude` with these arguments."""
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stdout


def tensor(number, shape, kind="Tensor(float)"):
    """Returns a tensor of 4-byte elements in the form of execution traces: value, shape, type."""
    count = 1
    for size in shape:
        count *= size
    return [number, number + 100, 0, count, 4, "cpu"], shape, kind


def arguments(*given):
    values, shapes, kinds = zip(*given) if given else ((), (), ())
    return {"values": list(values), "shapes": list(shapes), "types": list(kinds)}


def node(number, name, parent, tid=1, inputs=(), outputs=(), attrs=(), **more):
    given = [("rf_id", "uint64", number + 1000), ("tid", "uint64", tid), *attrs]
    return {
        "id": number,
        "name": name,
        "ctrl_deps": parent,
        "inputs": arguments(*inputs),
        "outputs": arguments(*outputs),
        "attrs": [{"name": n, "type": t, "value": v} for n, t, v in given],
        **more,
    }


def operator(number, name, parent, **more):
    schema = [("op_schema", "string", f"{name}(...) -> ...")]
    return node(number, name, parent, attrs=schema, thread="7", **more)


def kernel(number, name, parent, stream, start, duration, **more):
    return node(
        number, name, parent, cat="kernel", ph="X", stream=stream, device=0,
        ts=start, inclusive_dur=duration, exclusive_dur=duration, **more,
    )  # fmt: skip


def planted_nodes():
    """Returns rows 0 to 6. An operator calls another one, which launches two kernels. One node has no times."""
    pair = [tensor(3, [4]), tensor(4, [4])]
    pair_list = ([value for value, _, _ in pair], [[4], [4]], "GenericList[Tensor(float),Tensor(float)]")
    return [
        node(1, "[pytorch|profiler|execution_trace|process]", 1, tid=0),
        node(2, "[pytorch|profiler|execution_trace|thread]", 1),
        operator(
            10, "aten::mm", 2, inputs=[tensor(1, [2, 3]), tensor(2, [3, 2])], outputs=[tensor(3, [2, 2])],
            ts=10.0, inclusive_dur=5.0, exclusive_dur=2.0,
        ),  # fmt: skip
        operator(11, "aten::cat", 10, inputs=[pair_list], ts=11.0, inclusive_dur=3.0, exclusive_dur=3.0),
        kernel(12, "gemm", 11, 7, 20.0, 4.0),
        kernel(13, "gemm", 11, 9, 24.001, 1.5, sync_dep=[12]),
        operator(14, "aten::relu", 2),
    ]


def write_trace(path, nodes, **more):
    """Writes a linked trace and returns its path."""
    top = {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "2026-01-01 00:00:00", "start_ts": 1, "nodes": nodes}
    path.write_text(json.dumps({**top, **more}))
    return path


@pytest.fixture
def planted_file(tmp_path):
    return write_trace(tmp_path / "planted.json", planted_nodes())


@pytest.fixture
def planted(planted_file):
    import etude

    return etude.open(planted_file)


@pytest.fixture
def empty(tmp_path):
    import etude

    return etude.open(write_trace(tmp_path / "empty.json", []))


@pytest.fixture
def linked():
    """Returns host and device trace of a recorded step, linked."""
    import etude

    return etude.link(HOST, DEVICE).trace
