"""Runs small programs under the recording hook and reads their output files."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
import forked_python  # noqa: E402
import own_state  # noqa: E402, F401
from forked_python import LIGHT  # noqa: E402

PYTHON_FOLDER = TESTS.parent / "python"
HOOK_FOLDER = PYTHON_FOLDER / "etude" / "hook"


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds")


class Result:
    """A finished program and its capture folder."""

    def __init__(self, process, folder):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr
        self.folder = folder

    def names(self):
        """Returns the visible files of the folder."""
        return sorted(p.name for p in self.folder.iterdir() if not p.name.startswith("."))

    def hidden(self):
        return sorted(p.name for p in self.folder.iterdir() if p.name.startswith("."))

    def job(self):
        return json.loads((self.folder / "job.json").read_text())

    def rank(self, rank=0):
        return self.job()["ranks"][str(rank)]

    def statuses(self):
        return [json.loads(p.read_text()) for p in self.folder.glob(".etude-status.*.json")]

    def status(self):
        (status,) = self.statuses()
        return status

    def host(self, rank=0):
        return read_gzip_json(self.folder / f"host.{rank}.json.gz")

    def device(self, rank=0):
        return read_gzip_json(self.folder / f"device.{rank}.json.gz")


def read_gzip_json(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def attributes(node):
    return {attribute["name"]: attribute["value"] for attribute in node["attrs"]}


def check_traces(result, rank=0, steps=1):
    """Checks that the two files contain whole steps, are complete, and belong together."""
    host, device = result.host(rank), result.device(rank)
    nodes = {node["id"]: node for node in host["nodes"]}
    assert len(nodes) == len(host["nodes"])
    assert all(node["ctrl_deps"] in nodes for node in nodes.values())
    marks = [n for n in host["nodes"] if n["name"].startswith("ProfilerStep#")]
    assert len(marks) == steps
    first = result.rank(rank)["recorded_step"]["index"]
    assert sorted(m["name"] for m in marks) == [f"ProfilerStep#{first + i}" for i in range(steps)]
    events = {
        event["args"]["Record function id"]
        for event in device["traceEvents"]
        if "Record function id" in event.get("args", {})
    }
    operators = [n for n in host["nodes"] if attributes(n)["op_schema"]]
    assert operators
    assert all(attributes(node)["rf_id"] in events for node in operators)
    mark_ids = {mark["id"] for mark in marks}
    assert all(has_ancestor(node, mark_ids, nodes) for node in operators)
    return host


def has_ancestor(node, wanted, nodes):
    while node["id"] not in wanted:
        if node["ctrl_deps"] == node["id"]:
            return False
        node = nodes[node["ctrl_deps"]]
    return True


def names_of(host):
    return [node["name"] for node in host["nodes"]]


@pytest.fixture
def run(tmp_path):
    """run(source, ...) runs a program. Keyword arguments set the counts and the command. `fresh`: in a new Python,
    which commands and Python's options need."""

    def run_program(
        source,
        *arguments,
        warmup=2,
        steps=3,
        record_steps=1,
        python_options=(),
        command=None,
        environment=None,
        path=(),
        hook=True,
        fresh=False,
        timeout=120,
    ):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(source))
        folder = tmp_path / "capture"
        folder.mkdir(exist_ok=True)
        values = dict(os.environ)
        for name in list(values):
            if name.startswith("ETUDE_"):
                del values[name]
        parts = [str(HOOK_FOLDER)] if hook else [str(PYTHON_FOLDER)]
        values["PYTHONPATH"] = os.pathsep.join(parts + [str(p) for p in path])
        values["OMP_NUM_THREADS"] = "1"
        values["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "inductor")
        values["CAPTURE"] = str(folder)
        values["ETUDE_CACHE_DIR"] = str(tmp_path / "cache")
        if hook:
            values["ETUDE_RECORD_DIR"] = str(folder)
            values["ETUDE_RECORD_RECORDER"] = "observers"
            values["ETUDE_RECORD_WARMUP"] = str(warmup)
            values["ETUDE_RECORD_STEPS"] = str(steps)
            values["ETUDE_RECORD_RECORD_STEPS"] = str(record_steps)
        values.update(environment or {})
        how = {"env": values, "cwd": tmp_path, "timeout": timeout}
        line = [str(script), *arguments]
        if fresh or command or python_options:
            line = [*(command or [sys.executable, *python_options]), *line]
            process = subprocess.run(line, capture_output=True, text=True, **how)
        else:
            process = forked_python.run(line, **how)
        return Result(process, folder)

    return run_program


# Ranks of a job of two, started by torchrun if torchrun is tested.
TWO_RANKS = ("-E", str(TESTS / "start_ranks.py"), "2")

# A model and an optimizer, as the begin of programs.
SETUP = f"""
{LIGHT}
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(batch=5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(batch, 8)), torch.randn(batch, 4))
    loss.backward()
    optimizer.step()
    return loss
"""


def program(text):
    return SETUP + textwrap.dedent(text)
