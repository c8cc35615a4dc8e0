"""Errors and their messages."""

import copy
import gzip
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import warnings

import pytest
from conftest import DATA, DEVICE, HOST, TOOL, command, planted_nodes, write_trace

import etude

BROKEN = DATA / "broken_et.json"


def error_of(call, *given, **more):
    with pytest.raises(etude.Error) as caught:
        call(*given, **more)
    return caught.value.code, str(caught.value)


@pytest.mark.parametrize("call", [etude.open, etude.stats, etude.breakdown, etude.memory])
def test_a_file_that_is_not_there(call, tmp_path):
    code, text = error_of(call, tmp_path / "no.json")
    assert code == "io" and text == f"{tmp_path}/no.json: cannot open: No such file or directory"
    assert error_of(call, "x" * 300)[0] == "io"
    code, text = error_of(call, "")
    assert code == "usage" and text == "found an empty file name, expected a file name"


def test_a_file_that_is_none_of_ours(tmp_path):
    (tmp_path / "x.json").write_text("hello")
    code, text = error_of(etude.open, tmp_path / "x.json")
    assert code == "bad_input" and "found data in an unknown format, expected a trace" in text
    code, text = error_of(etude.open, tmp_path)
    assert code == "bad_input" and "found no trace" in text


def test_names_in_messages_do_not_steer_terminals(tmp_path):
    (tmp_path / "host.0.json").write_text('{"schema": "\\u001b[2J\\u202e", "nodes": []}')
    with pytest.warns(etude.Warning) as warned:
        etude.open(tmp_path / "host.0.json")
    assert r"unknown version '\u001b[2J\u202e'" in str(warned[0].message)


def test_a_damaged_file_names_the_place(tmp_path):
    path = write_trace(tmp_path / "x.json", planted_nodes())
    text = path.read_text()
    path.write_text(text[: text.index('"aten::relu"')])
    with pytest.warns(etude.Warning, match="x.json:byte 2545, in element 6 of .nodes."):
        trace = etude.open(path)
    assert 0 < len(trace) < 7 and trace.health["verdict"] != "good"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code, message = error_of(etude.open, path, strict=True)
    assert code == "bad_input" and message.startswith(str(path)) and "byte" in message


def test_the_message_is_the_command_s():
    with pytest.raises(etude.Error) as caught:
        etude.open(BROKEN, strict=True)
    done = subprocess.run([TOOL, "stats", "--strict", str(BROKEN)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and done.stderr == f"etude: {caught.value}\n"


def test_warnings_can_be_errors(tmp_path):
    data = HOST.read_bytes()
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(gzip.decompress(data)[:-2000]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", etude.Warning)
        with pytest.raises(etude.Warning, match="cut.json.gz"):
            etude.open(cut)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        etude.open(cut)
    assert [w.category for w in seen] == [etude.Warning] and seen[0].filename == __file__


@pytest.mark.parametrize("given", [3, None, 1.5, [3], object()])
def test_sources_of_wrong_types(given):
    for call in (etude.open, etude.stats, etude.slice):
        with pytest.raises(TypeError):
            call(given)


def test_lists_in_lists_are_no_sources():
    with pytest.raises(TypeError, match="found a list"):
        etude.stats([[HOST]])
    trace = etude.open(HOST)
    for thing in (trace.nodes, trace.nodes["id"], etude.stats(trace)):
        with pytest.raises(TypeError):
            etude.stats(thing)


def test_lists_where_one_trace_is_wanted(tmp_path):
    trace = etude.open(HOST)
    for given in ([], (), [trace], [trace, trace]):
        for call in (
            lambda: etude.convert(given, tmp_path / "x.et"),
            lambda: etude.slice(given, op="aten::mm"),
            lambda: etude.link(given, DEVICE),
        ):
            with pytest.raises(TypeError, match="found a list"):
                call()


def test_names_that_are_no_text():
    trace = etude.open(HOST)
    half = "\ud800"
    with pytest.raises(UnicodeEncodeError):
        etude.open(half)
    with pytest.raises(UnicodeEncodeError):
        etude.slice(trace, op=half)
    with pytest.raises(ValueError, match="null"):
        etude.open("a\0b")
    with pytest.raises(etude.Error, match="no node of this name"):
        etude.slice(trace, op="aten::mm\0x")
    for key in (half, 3, None):
        with pytest.raises(TypeError):
            trace.nodes[key]


def test_a_path_that_is_no_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/h\xff\n.json.gz"
    with open(path, "wb") as file:
        file.write(HOST.read_bytes())
    trace = etude.open(path)
    assert os.fsencode(trace.path) == path and len(etude.open(trace.path)) == 224
    assert "�" in repr(trace) and "�" in trace.info["path"]
    assert etude.stats(path).traces[0]["path"] == trace.info["path"]
    assert error_of(etude.slice, trace, op="none")[1].count("�") == 1
    folder = os.fsencode(tmp_path) + b"/\xfe"
    os.mkdir(folder)
    os.rename(path, folder + b"/host.0.json.gz")
    job = etude.open(folder)
    assert os.fsencode(job.path) == folder and "�" in repr(job)
    with pytest.raises(KeyError, match="no rank 7"):
        job[7]


def test_numbers_of_ranks_at_a_time():
    assert error_of(etude.open, HOST, jobs=-1) == ("usage", "jobs: found -1, expected a number of ranks, or 0")
    assert error_of(etude.stats, HOST, jobs=-1)[0] == error_of(etude.diff, HOST, HOST, jobs=-1)[0] == "usage"
    with pytest.raises(TypeError):
        etude.open(HOST, jobs=2**70)


def test_traces_that_do_not_belong_together(planted):
    assert error_of(etude.link, DEVICE, HOST)[0] == "bad_input"
    assert error_of(etude.link, planted, DEVICE)[0] == "bad_input"


def test_errors_can_be_handed_on():
    error = etude.Error("io", "x: cannot open")
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(same) is etude.Error and (same.code, str(same)) == ("io", "x: cannot open")


def test_traces_cannot_be_pickled():
    trace = etude.open(HOST)
    for thing in (trace, trace.nodes, trace.nodes["id"], trace.deps, etude.stats(trace)):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(thing)
        with pytest.raises(TypeError, match="cannot pickle"):
            copy.deepcopy(thing)
    assert pickle.loads(pickle.dumps(trace.nodes["id"].values)).tolist() == trace.nodes["id"].values.tolist()


def test_nothing_is_made_by_hand():
    for kind in (etude.Trace, etude.Job, etude.Column, etude.Columns, etude.Report, etude.Table):
        with pytest.raises(TypeError, match="no constructor"):
            kind()
    with pytest.raises(AttributeError):
        etude.open(HOST).rank = 3


def test_names_of_the_package():
    namespace = {}
    exec("from etude import *", namespace)
    assert "stats" in namespace and not {"open", "slice", "Warning"} & set(namespace)
    assert {"open", "slice", "Warning", "stats"} <= set(dir(etude))
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        etude.opne
    assert issubclass(etude.Warning, UserWarning) and issubclass(etude.Error, Exception)
    assert etude.__version__ in command("--version")


def test_limits_of_depth_hold(tmp_path):
    deep = tmp_path / "deep.json"
    deep.write_text('{"schema": "1.1.1", "nodes": ' + "[" * 100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert error_of(etude.open, deep, strict=True)[0] == "bad_input"


def test_a_package_without_the_module(tmp_path):
    """As on PYTHONPATH of the source tree: recording works, and all other functions report the missing module."""
    ignore = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(pathlib.Path(etude.__file__).parent, tmp_path / "etude", ignore=ignore)
    code = "import etude; etude.record; print(hasattr(etude, 'nothing')); etude.open"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "False\n"
    assert "ImportError: etude.open: missing module etude._core" in done.stderr
