"""Commands as functions: the same results as on the command line."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import DATA, TOOL

import etude
from etude import commands


@pytest.fixture(autouse=True)
def program(monkeypatch):
    monkeypatch.setenv("ETUDE_PROGRAM", str(TOOL))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A generated job of four ranks in classes."""
    folder = tmp_path_factory.mktemp("job") / "job"
    os.environ["ETUDE_PROGRAM"] = str(TOOL)
    made = etude.generate("llm", "llama-3-8b", folder, dp=4, device="h100-sxm", to="classes")
    assert made.ok and made.path == str(folder) and made["ranks"] == 4
    return folder


def printed(*words):
    return json.loads(subprocess.run([TOOL, *words], check=True, capture_output=True, text=True).stdout)


def test_options_are_keywords():
    words = commands.words_of(
        {"dp": 8, "break_cycles": True, "strict": False, "top": None, "straggler": ["0:2", "1:3"], "network": pathlib.Path("n")}
    )
    assert words == ["--dp", "8", "--break-cycles", "--straggler", "0:2", "--straggler", "1:3", "--network", "n"]


def test_a_job_is_simulated(job):
    network = "Ring(4):50GB/s,500ns"
    step = etude.simulate(job, network=network)
    assert step.ok and step.to_json() == printed("simulate", job, "--network", network, "--json")
    assert etude.simulate(job, network="Ring(4):5GB/s,500ns")["step_ns"] > step["step_ns"]
    assert "ranks" in step.tables and sum(row["count"] for row in step["ranks"]) == 4
    assert step.to_pandas("ranks")["end_ns"].max() == step["step_ns"]
    shown = step._repr_html_()
    assert str(step["step_ns"]) in shown and "<table>" in shown
    with pytest.raises(etude.Error, match="found no table 'machine', expected one of times, "):
        step.to_pandas("machine")


def test_models_of_networks(job, tmp_path):
    links = tmp_path / "links.txt"
    links.write_text("".join(f"{npu} switch 50GB/s 250ns\n" for npu in range(4)))
    shared = etude.simulate(job, network=links, sensitivity=True, noise=0.1, runs=3, mtbf="100h", checkpoint="1s", restart="1s")
    assert shared["model"] == "etude-1" and shared["step_ns"] == etude.simulate(job, network="Switch(4):50GB/s,250ns")["step_ns"]
    assert {row["key"] for row in shared["sensitivity"]} == {"compute", "bandwidth_0", "latency_0"}
    assert shared["variation"][0]["runs"] == 3 and 0.9 < shared["failures"][0]["useful_share"] < 1
    assert etude.simulate(job, network="Ring(4):50GB/s,500ns", model="astra-sim-2.0")["model"] == "astra-sim-2.0"
    assert etude.simulate(job, network=links, algorithms="gloo")["machine"]["algorithm_rules"] == "gloo"


def test_the_simulated_job_is_a_job(job, tmp_path):
    step = etude.simulate(job, network="Ring(4):50GB/s,500ns", output=tmp_path / "simulated")
    assert step.path == str(tmp_path / "simulated") and len(step["written"]) > 0
    simulated = etude.open(step.path)
    assert simulated.ranks == [0, 1, 2, 3]
    drawn = etude.timeline(simulated, tmp_path / "timeline.json")
    assert drawn.ok and (tmp_path / "timeline.json").stat().st_size > 0


def test_opened_traces_and_lists_are_inputs(tmp_path):
    trace = etude.open(DATA / "mlp_et.json.gz")
    assert etude.info(trace).to_json() == printed("info", DATA / "mlp_et.json.gz", "--json")
    both = etude.validate([trace, DATA / "mlp_kineto.json.gz"])
    assert len(both["traces"]) == 2
    page = etude.report(etude.open(DATA / "capture"), tmp_path / "page.html")
    assert page.ok and "<html" in (tmp_path / "page.html").read_text()
    part, _ = etude.slice(trace, op="aten::addmm")
    with pytest.raises(etude.Error, match="write it with etude.convert first"):
        etude.info(part)


def test_no_is_an_answer(tmp_path):
    (tmp_path / "t.json").write_text(
        '{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 0, "nodes": ['
        '{"id": 1, "name": "a", "ctrl_deps": 2, "inputs": {"values": [], "shapes": [], "types": []}, '
        '"outputs": {"values": [], "shapes": [], "types": []}, "attrs": []},'
        '{"id": 2, "name": "b", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [], "types": []}, '
        '"outputs": {"values": [], "shapes": [], "types": []}, "attrs": []}]}'
    )
    verdict = etude.validate(tmp_path / "t.json")
    assert not verdict.ok and not verdict["valid"] and "no" in repr(verdict)


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        (lambda: etude.info("nothing"), "io", "nothing: cannot open: No such file or directory"),
        (lambda: etude.simulate(DATA / "mlp_et.json.gz", network="Ring(0):1GB/s,1ns"), "usage", "--network"),
        (lambda: etude.simulate(DATA / "mlp_et.json.gz", wings=3), "usage", "unknown option '--wings'"),
        (lambda: etude.sweep(DATA / "mix.toml", "out"), "bad_input", "mix.toml"),
    ],
)
def test_errors_are_those_of_the_command(call, code, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(etude.Error) as caught:
        call()
    assert caught.value.code == code and text in str(caught.value)


def test_warnings_are_pythons(tmp_path):
    (tmp_path / "cut.json").write_bytes(b'{"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 1')
    with pytest.warns(etude.Warning):
        etude.info(tmp_path / "cut.json")


def test_a_sweep_is_a_table(tmp_path):
    (tmp_path / "s.toml").write_text(
        '[base]\ngenerate = { what = "microbench", model = "all_reduce", ranks = 2, size = "1MiB" }\n'
        '[grid]\nnetwork = ["Ring(2):50GB/s,500ns", "Ring(2):5GB/s,500ns"]\n'
    )
    done = etude.sweep(tmp_path / "s.toml", tmp_path / "points")
    frame = done.to_pandas("points")
    assert len(frame) == 2 and frame["step_ns"].is_monotonic_increasing


def test_an_edited_job_is_simulated(tmp_path):
    etude.convert(etude.link(DATA / "mlp_et.json.gz", DATA / "mlp_kineto.json.gz").trace, tmp_path / "linked.json")
    edited = etude.whatif(tmp_path / "linked.json", tmp_path / "eight", dp=8)
    assert edited["ranks"] == 8 and len(edited["edits"][0]["buckets"][0]) == 3
    step = etude.simulate(tmp_path / "eight", network="Ring(8):10GB/s,5us")
    assert step["rank_count"] == 8 and sum(row["count"] for row in step["collectives"]) == 3
    edited = etude.whatif(tmp_path / "linked.json", tmp_path / "late", dp=8, overlap="off", compress=2, no_gaps=True)
    assert [edit["edit"] for edit in edited["edits"]] == ["--dp 8", "--overlap off", "--compress 2", "--no-gaps"]


def test_a_table_of_operators_times_a_job(tmp_path):
    job, table = tmp_path / "linked.json", tmp_path / "there.csv"
    etude.convert(etude.link(DATA / "mlp_et.json.gz", DATA / "mlp_kineto.json.gz").trace, job)
    table.write_text(
        "operator,arguments,device,processor,threads,torch,measured,calls,time_ns,spread,state\n"
        'aten::mm,"float32[256,2048],float32[2048,2048]",cpu,there,1,2.13.0,in step,9,1000,0.1,measured\n'
    )
    edited = etude.whatif(job, tmp_path / "there", operators=table)
    assert edited["edits"][0]["operators"]["measured"] == 2
    own, there = (etude.simulate(job, network="Ring(1):1GB/s,1us", operators=one) for one in (None, table))
    assert there["step_ns"] < 0.9 * own["step_ns"]


def test_a_generated_job_is_edited_by_its_plan(job, tmp_path):
    edited = etude.whatif(job, tmp_path / "edited", tp=4, dp=2, keep="global-batch", layers=4)
    assert edited["before"]["ranks"] == 4 and edited["after"]["ranks"] == 8
    assert edited["after"]["items"] == edited["before"]["items"]
    settings = edited["after"]["settings"]
    etude.generate(
        "llm", "llama-3-8b", tmp_path / "made", dp=2, tp=4, layers=4, device="h100-sxm", to="classes",
        sequences=settings["sequences"], micro_batches=settings["micro_batches"],
    )  # fmt: skip
    assert (tmp_path / "edited/classes.json").read_bytes() == (tmp_path / "made/classes.json").read_bytes()
    with pytest.raises(etude.Error, match="nearest possible: --tp"):
        etude.whatif(job, tmp_path / "none", tp=12)


def test_a_program_that_is_nowhere(monkeypatch):
    monkeypatch.delenv("ETUDE_PROGRAM")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(commands.sysconfig, "get_path", lambda name: "/nowhere")
    with pytest.raises(etude.Error, match="missing program etude"):
        etude.info(DATA / "mlp_et.json.gz")


def test_importing_etude_imports_no_commands():
    code = "import sys, etude; print('etude.commands' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
