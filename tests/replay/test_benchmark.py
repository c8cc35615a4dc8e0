"""`etude benchmark`: what it writes runs in a clean folder without Etude, and does what the recorded step did."""

import collections
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")

PROGRAM = """
import torch
from torch import nn

class SecretBlock(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(size), nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x)), approximate="tanh"))

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Embedding(50, 16), *[SecretBlock(16) for _ in range(12)], nn.Dropout(0.1), nn.Linear(16, 50))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randint(0, 50, (4, 8))
    optimizer.zero_grad()
    with torch.profiler.record_function("secret-loss"):
        loss = nn.functional.cross_entropy(model(x).view(-1, 50), x.view(-1))
    loss.backward()
    optimizer.step()
"""

# Writes an execution trace of one step of the benchmark in the working folder.
TRACE = """
import sys
sys.path.insert(0, ".")
import torch, runtime, step
from torch.profiler import ExecutionTraceObserver
memory = runtime.Memory(open("step.data").read(), 0)
torch.set_num_threads(memory.threads)
for i in range(3):
    memory.restore()
    if i == 2:
        observer = ExecutionTraceObserver()
        observer.register_callback("trace.json")
        observer.start()
    step.step(memory.slots)
    runtime.empty(memory.slots, memory.released)
observer.stop()
observer.unregister_callback()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A capture, and the benchmark made of it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "program.py").write_text(PROGRAM)
    record = [ETUDE, "record", "-q", "--recorder", "observers", "--warmup", "2", "--steps", "3", "-o", "job"]
    subprocess.run([*record, "--", sys.executable, "program.py"], cwd=folder, check=True)
    done = make(folder, "job", "bench")
    assert done.returncode == 0, done.stderr
    return folder


def make(folder, trace, output, *options):
    line = [ETUDE, "benchmark", trace, "-o", output, "--warmup", "1", "--iterations", "2", *options]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True)


def alone(folder, *words):
    """Runs a command in the folder with nothing of the environment but compilers."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def calls(nodes):
    """How often each operator that calls no other was called with tensors of which shapes and types."""
    schemas = {node["id"]: next((a["value"] for a in node["attrs"] if a["name"] == "op_schema"), "") for node in nodes}
    callers = {node["ctrl_deps"] for node in nodes if schemas[node["id"]]}
    return collections.Counter(
        (schemas[node["id"]].split("(")[0], str(node["inputs"]["shapes"]), str(node["inputs"]["types"]))
        for node in nodes
        if schemas[node["id"]] and node["id"] not in callers
    )


def test_the_python_program_runs_what_was_recorded(made, tmp_path):
    folder = shutil.copytree(made / "bench", tmp_path / "alone")
    result = json.loads(alone(folder, sys.executable, "benchmark.py", "--json", "--iterations", "3"))
    assert result["steps"] == 3 and result["cpu_ms"]["min"] > 0 and result["threads"] == 1
    alone(folder, sys.executable, "-c", TRACE)
    recorded = json.loads(gzip.open(made / "job/host.0.json.gz", "rt").read())["nodes"]
    again = json.loads((folder / "trace.json").read_text())["nodes"]
    missing = calls(recorded) - calls(again)
    assert not missing, missing
    # What more there is made tensors on memory of others.
    more = {name.split(".")[0] for name, _, _ in calls(again) - calls(recorded)}
    assert more <= {"aten::set_", "aten::empty"}


def test_the_cpp_program_needs_libtorch_only(made, tmp_path):
    folder = shutil.copytree(made / "bench", tmp_path / "alone")
    libtorch = pathlib.Path(torch.__file__).parent
    alone(folder, "cmake", "-S", ".", "-B", "build", f"-DTORCH={libtorch}", "-DCMAKE_BUILD_TYPE=Debug")
    alone(folder, "cmake", "--build", "build")
    result = json.loads(alone(folder, "build/benchmark", "--json", "--iterations", "3", "--warmup", "1"))
    assert result["steps"] == 3 and result["wall_ms"]["max"] >= result["wall_ms"]["median"] > 0
    assert "median" in alone(folder, "build/benchmark", "--threads", "2")


def test_repeated_layers_are_loops(made):
    text = (made / "bench/step.py").read_text()
    assert "for i in range(12):" in text
    assert len(text.splitlines()) < 250


def test_nothing_is_named(made):
    for path in (made / "bench").iterdir():
        assert b"ecret" not in path.read_bytes(), path


def test_what_is_left_out_is_said(made, tmp_path):
    done = make(made, "job", tmp_path / "part", "--skip", "aten::gelu")
    assert done.returncode == 1 and "operators" in done.stdout
    readme = (tmp_path / "part/README.md").read_text()
    assert "* not run: `aten::gelu`, 12 ×: asked for by --skip" in readme
    assert "gelu(" not in (tmp_path / "part/step.py").read_text()


def test_a_folder_that_cannot_be_made(made):
    done = make(made, "job", "/proc/nothing/bench")
    assert done.returncode == 5 and "/proc/nothing/bench" in done.stderr
