"""The functions: the same figures as on the command line, new traces, files."""

import csv
import io
import json
import shutil

import pytest
from conftest import CAPTURE, DEVICE, HOST, TOOL, command, planted_nodes, write_trace

import etude

# The inspections, by command: all functions of the module but these.
OTHERS = {"convert", "diff", "link", "open", "slice"}
FUNCTIONS = {
    name.replace("_", "-"): getattr(etude, name)
    for name in dir(etude)
    if name not in OTHERS and isinstance(getattr(etude, name), type(etude.open))
}


@pytest.fixture
def job(tmp_path):
    """A capture folder of two ranks with host and device traces."""
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in (0, 1):
        shutil.copy(HOST, folder / f"host.{rank}.json.gz")
        shutil.copy(DEVICE, folder / f"device.{rank}.json.gz")
    return folder


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_path_gives_what_the_command_prints(name, job, planted_file):
    for source in (planted_file, HOST, DEVICE, job):
        report = FUNCTIONS[name](source)
        assert report.to_json() == json.loads(command(name, "--json", source))
        assert str(report) == command(name, source)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_open_gives_the_same_as_its_path(name, job, planted_file):
    for source in (planted_file, DEVICE, job):
        assert FUNCTIONS[name](etude.open(source)).to_json() == FUNCTIONS[name](source).to_json()
    one = FUNCTIONS[name](etude.open(job)[1])
    for table in one:
        rows = [row for row in FUNCTIONS[name](job)[table].to_dicts() if row.pop("rank") == 1]
        assert one[table].to_dicts() == rows


def test_reports_and_their_tables(planted):
    report = etude.stats(planted)
    assert report.tables == list(report) and "ops" in report and "nothing" not in report
    with pytest.raises(KeyError, match="nothing"):
        report["nothing"]
    ops = report["ops"]
    assert ops.key == "ops" and len(ops) == len(ops.to_dicts()) > 0 and ops.title in str(ops)
    assert repr(ops) == f"<etude.Table ops: {len(ops)} rows>"
    assert repr(report) == "<etude.Report etude-stats: 1 traces>"
    rows = list(csv.DictReader(io.StringIO(ops.to_csv())))
    assert [row["name"] for row in rows] == [row["name"] for row in ops.to_dicts()]
    assert list(rows[0]) == ops.columns == list(ops.to_dicts()[0])
    assert report.same is None
    (trace,) = report.traces
    assert trace["path"] == planted.path and trace["trust"]["verdict"] == "good"


def test_planted_figures(planted):
    gemm = next(row for row in etude.stats(planted)["ops"].to_dicts() if row["name"] == "gemm")
    assert (gemm["count"], gemm["total_ns"], gemm["min_ns"], gemm["max_ns"]) == (2, 5500, 1500, 4000)


def test_several_sources(planted, planted_file, job):
    expected = command("stats", "--json", planted_file, HOST)
    assert etude.stats([planted_file, str(HOST)]).to_json() == json.loads(expected)
    assert etude.stats((planted, etude.open(HOST))).to_json() == json.loads(expected)
    mixed = etude.stats([planted_file, etude.open(job)], jobs=1)
    assert len(mixed.traces) == 3 and mixed["ops"].columns[0] == "rank"
    with pytest.raises(etude.Error, match="found no trace"):
        etude.stats([])


def test_a_trace_that_was_made_is_inspected(linked):
    report = etude.breakdown(linked)
    assert report.traces[0]["path"] == "" and len(report["steps"]) > 0


def test_link_as_the_command_does(tmp_path):
    made = etude.link(HOST, DEVICE)
    assert isinstance(made, etude.Made) and made.trace.path is None and made.trace.info["kind"] == "linked"
    document = json.loads(command("link", HOST, DEVICE, "-o", tmp_path / "linked.json", "--json"))
    said = document["links"][0] if "links" in document else document
    for key, value in made.account.items():
        assert said[key] == value, key
    file = etude.open(tmp_path / "linked.json")
    assert file.nodes["start_ns"].to_pandas().equals(made.trace.nodes["start_ns"].to_pandas())
    trace, account = etude.link(etude.open(HOST), str(DEVICE), drop_orphans=True)
    assert len(trace) == sum(account["host_nodes"].values()) == 224


def test_slice_as_the_command_does(linked, tmp_path):
    made = etude.slice(linked, op="aten::add*", step=1)
    assert 0 < made.account["selected"] <= len(made.trace) < len(linked)
    etude.convert(linked, tmp_path / "linked.json")
    command("slice", tmp_path / "linked.json", "-o", tmp_path / "part.json", "--op", "aten::add*", "--step", "1")
    part = etude.open(tmp_path / "part.json")
    assert part.nodes["name"].to_pandas().tolist() == made.trace.nodes["name"].to_pandas().tolist()


def test_slice_by_each_filter(planted):
    def names(**filters):
        trace = etude.slice(planted, **filters).trace
        return [trace.nodes["name"][row] for row in range(len(trace)) if trace.nodes["kind"][row] != "process"]

    assert names(op="aten::relu") == names(op=["aten::relu"]) == names(label=("relu",))
    assert "gemm" in names(thread=7) and "gemm" in names(thread="7")
    assert names(stream=9).count("gemm") == 1 and names(stream=[7, "9"]).count("gemm") == 2
    assert "aten::mm" in names(time="0us..2us")
    with pytest.raises(etude.Error, match="missing selector") as error:
        etude.slice(planted)
    assert error.value.code == "usage"
    with pytest.raises(etude.Error, match="aten::relu"):
        etude.slice(planted, op="aten::rleu")
    with pytest.raises(etude.Error, match="did you mean 'forward'"):
        etude.slice(planted, phase="forwards")


@pytest.mark.parametrize("filters", [{"op": 1.5}, {"op": b"x"}, {"op": ["x", None]}, {"step": {1}}, {"other": "x"}])
def test_slice_refuses_other_types(planted, filters):
    with pytest.raises(TypeError):
        etude.slice(planted, **filters)


def test_convert_as_the_command_does(tmp_path):
    written = etude.convert(HOST, tmp_path / "a.et")
    said = json.loads(command("convert", HOST, "-o", tmp_path / "b.et", "--json"))
    (row,) = said["files"]
    assert {**written, "path": ""} == {**row["output"], "path": ""}
    assert (tmp_path / "a.et").read_bytes() == (tmp_path / "b.et").read_bytes()


def test_convert_to_a_format(planted, planted_file, tmp_path):
    assert etude.convert(planted, tmp_path / "x.json")["nodes"] == 7
    assert etude.open(tmp_path / "x.json").info["kind"] == "linked"
    etude.convert(planted_file, tmp_path / "y", to="linked")
    assert (tmp_path / "y").read_bytes() == (tmp_path / "x.json").read_bytes()
    assert etude.convert(planted, tmp_path / "z.json.gz", to="et")["nodes"] == 7
    assert etude.open(tmp_path / "z.json.gz").info["kind"] == "chakra"
    with pytest.raises(etude.Error, match="expected 'et' or 'linked'"):
        etude.convert(planted, tmp_path / "w", to="json")
    with pytest.raises(etude.Error, match="is the input"):
        etude.convert(planted, planted_file)
    with pytest.raises(etude.Error) as error:
        etude.convert(planted, tmp_path / "no" / "where.et")
    assert error.value.code == "io"


def test_convert_says_what_it_broke(tmp_path):
    nodes = planted_nodes()
    nodes[4]["sync_dep"] = [13]
    path = write_trace(tmp_path / "cycle.json", nodes)
    with pytest.warns(etude.Warning, match="found a cycle of dependencies"):
        written = etude.convert(path, tmp_path / "x.et")
    assert written["broken_edges"] == 1
    with pytest.raises(etude.Error, match="cycle") as error:
        etude.convert(path, tmp_path / "y.et", strict=True)
    assert error.value.code == "bad_input" and not (tmp_path / "y.et").exists()


def test_one_trace_of_a_job(job, tmp_path):
    with pytest.raises(etude.Error, match=r"found a Job of 2 traces, expected one: job\[RANK\]"):
        etude.convert(etude.open(job), tmp_path / "x.et")
    assert etude.convert(etude.open(CAPTURE), tmp_path / "x.et")["nodes"] == len(etude.open(CAPTURE)[0])


def test_diff(planted, tmp_path):
    nodes = planted_nodes()
    same = etude.diff(planted, write_trace(tmp_path / "same.json", nodes))
    assert same.same is True
    nodes[6]["name"] = "aten::gelu"
    other = write_trace(tmp_path / "other.json", nodes)
    report = etude.diff(planted.path, other)
    assert report.same is False
    assert report.to_json() == json.loads(command("diff", "--json", planted.path, other, code=1))
    assert str(report) == command("diff", planted.path, other, code=1)
    assert etude.diff(planted, etude.open(other)).to_json() == report.to_json()


def test_diff_of_jobs(job, tmp_path):
    fewer = tmp_path / "fewer"
    fewer.mkdir()
    shutil.copy(job / "host.0.json.gz", fewer)
    shutil.copy(job / "device.0.json.gz", fewer)
    assert etude.diff(job, etude.open(job)).same is True
    with pytest.warns(etude.Warning, match="b has no such rank"):
        report = etude.diff(etude.open(job), fewer)
    assert report.same is False and len(report.traces) == 1


def test_the_tool_is_the_one_that_is_meant():
    assert TOOL.exists() and etude.__version__ in command("--version")
