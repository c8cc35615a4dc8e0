"""`etude benchmark`: its output runs in a clean folder without Etude, and performs the recorded step."""

import collections
import gzip
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import two_ranks
from forked_python import END_OF_RANK, LIGHT

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")

PROGRAM = LIGHT + """
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
sequence = torch.randn(20, 16)
for _ in range(10):
    x = torch.randint(0, 50, (4, 8))
    optimizer.zero_grad()
    state = torch.zeros(1, 16) * torch.tensor([0.5])  # content that no operator wrote
    wave = torch.full((3,), 2 - 1j)
    torch.add(wave, wave, alpha=1j)
    torch.histogram(state, 4)  # has a tensor that need not be, and is not
    for k in range(20):
        state = torch.tanh(state + sequence.narrow(0, k, 1))
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

# Frees a tensor of 4 MiB and makes it again. Prints the fewest page faults of this before and after steps that
# return pages, and the most in such a step.
PAGES = """
import resource, sys
sys.path.insert(0, ".")
import torch, runtime

def refill():
    t[0] = None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    t[0] = torch.ones(1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def refill_in_step():
    runtime.freed_pages.begin_step()
    return refill()

runtime.set_heap(1 << 25, True, 8 << 20)
t = runtime.Slots([None, None])
kept = min(refill() for _ in range(9))
returned = max(refill_in_step() for _ in range(9))
t[1] = t[0].view(-1)
t[0] = None
assert t[1].sum() == 1 << 20  # still in use
runtime.freed_pages.left = 0
print(kept, returned, min(refill() for _ in range(9)))
"""

# Communications of several kinds and groups, in which ranks take part differently.
JOB = LIGHT + """
import torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
both, own = dist.new_group([0, 1]), [dist.new_group([0]), dist.new_group([1])][rank]
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
name = dist.group.WORLD.group_name
for _ in range(8):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    works = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
    for work in works:
        work.wait()
    optimizer.step()
    value = torch.ones(4)
    dist.all_reduce(value, op=dist.ReduceOp.MAX, group=both)
    dist.all_reduce(value, group=own)
    parts = [torch.empty(4), torch.empty(4)]
    dist.all_gather(parts, value)
    summed = torch.ops._c10d_functional.all_reduce(parts[0], "sum", name)
    value = torch.ops._c10d_functional.wait_tensor(summed) + 1
    if rank == 0:
        dist.send(value, 1)
    else:
        dist.recv(value, 0)
""" + END_OF_RANK


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A capture, and its benchmark."""
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
    """Runs a command in the folder with an environment of compilers only."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder):
    """Builds as the README describes, but with the fastest compilation."""
    libtorch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
    alone(folder, "cmake", "-S", ".", "-B", "build", f"-DTORCH={libtorch}", "-DCMAKE_BUILD_TYPE=Debug",
          "-DCMAKE_CXX_FLAGS_DEBUG=-O0")  # fmt: skip
    alone(folder, "cmake", "--build", "build")


def calls(nodes):
    """Returns how often each operator that calls no other was called with tensors of which shapes and types."""
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
    # The additional operators made tensors on memory of others, and filled them.
    more = {name.split(".")[0] for name, _, _ in calls(again) - calls(recorded)}
    assert more <= {"aten::set_", "aten::empty", "aten::copy_"}


def test_the_python_program_returns_pages_of_freed_tensors(made, tmp_path):
    folder = shutil.copytree(made / "bench", tmp_path / "alone")
    kept, returned, after = map(int, alone(folder, sys.executable, "-c", PAGES).split())
    assert kept < 64 and returned > 900 and after < 64, (kept, returned, after)


def test_the_cpp_program_needs_libtorch_only(made, tmp_path):
    folder = shutil.copytree(made / "bench", tmp_path / "alone")
    build(folder)
    result = json.loads(alone(folder, "build/benchmark", "--json", "--iterations", "3", "--warmup", "1"))
    assert result["steps"] == 3 and result["wall_ms"]["max"] >= result["wall_ms"]["median"] > 0
    assert "median" in alone(folder, "build/benchmark", "--threads", "2")
    # On a device whose memory only it can access (tests/suite/test_device.cc).
    library = os.path.join(os.environ["ETUDE_BIN"], "../tests/operators/test_device.so")
    there = alone(folder, "build/benchmark", "--device", "loopback", "--library", library, "--json", "--iterations", "1")
    assert json.loads(there)["device"] == "loopback"


@pytest.fixture(scope="module")
def built_once(job, tmp_path_factory):
    """The program of two ranks. To build it takes longest of all here."""
    folder = shutil.copytree(job, tmp_path_factory.mktemp("built") / "alone")
    build(folder)
    return folder


@pytest.fixture
def built_job(built_once):
    """The built program, with the files that belong to it. It reads those of the folder that it was built in."""
    gaps = (built_once / "gaps_0.data").read_bytes()
    yield built_once
    (built_once / "gaps_0.data").write_bytes(gaps)


def test_gaps_of_the_original_pass(built_job):
    """Gaps of each rank are its own. Here those of rank 0 are made very long, and it waits for the first half of
    them."""
    folder = built_job
    words = (folder / "gaps_0.data").read_text().split()
    count = int(words[3])
    assert words[:3] == ["gaps", "1", "calls"] and len(words) == 4 + 2 * (count + 1)
    assert sum(map(int, words[4:])) > 0 and (folder / "gaps_1.data").exists()
    millisecond = 10**6
    rows = [(0, 0)] * (count + 1)
    rows[count // 2] = rows[count] = (20 * millisecond, 20 * millisecond)
    (folder / "gaps_0.data").write_text(f"gaps 1\ncalls {count}\n" + "".join(f"{idle} {busy}\n" for idle, busy in rows))
    for program in (["benchmark.py"], ["--no-python", "build/benchmark"]):
        result = launched(folder, *program)
        assert result["gaps"] == "recorded" and result["wall_ms"]["min"] >= 80
        # The processor is idle while it waits.
        assert result["cpu_ms"]["min"] >= 20 and launched(folder, *program, "--gaps", "none")["gaps"] == "none"
    (folder / "gaps_0.data").unlink()
    assert launched(folder, "benchmark.py")["gaps"] == "none"
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*ranks, "benchmark.py", "--gaps", "recorded"], cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0 and "the gaps of the original program are unknown" in done.stderr


def test_the_readme_says_how_close_it_is(job):
    readme = (job / "README.md").read_text()
    assert readme.count("| deviation |") == 2 and "| with gaps between operators |" in readme
    assert "Page faults per step:" in readme and "* `gaps_0.data`" in readme


def test_repeated_layers_are_loops(made):
    text = (made / "bench/step.py").read_text()
    assert "for i in range(12):" in text
    # Steps of a sequence, which differ in their begin. The last one leaves nothing.
    assert "for i in range(19):" in text and re.search(r"aten\.narrow\.default\(t\[\d+\], 0, i, 1\)", text)
    assert len(re.findall(r"^Op narrow_", (made / "bench/step.cc").read_text(), re.M)) == 1
    assert len(text.splitlines()) < 250


def test_nothing_is_named(made):
    for path in (made / "bench").iterdir():
        assert b"ecret" not in path.read_bytes(), path


def test_what_is_left_out_is_said(made, tmp_path):
    done = make(made, "job", tmp_path / "part", "--skip", "aten::gelu")
    assert done.returncode == 1 and "operators" in done.stdout
    readme = (tmp_path / "part/README.md").read_text()
    assert re.search(r"\* not run: `aten::gelu`, 12 ×, [0-9.]+ % of the time: skipped by --skip", readme)
    assert "gelu(" not in (tmp_path / "part/step.py").read_text()


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The benchmark of a job of two ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    two_ranks.record(folder, JOB, "--recorder", "native")
    done = make(folder, "job", "bench", "--ranks", "all")
    assert done.returncode == 0, done.stderr
    return folder / "bench"


def launched(folder, *words):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return json.loads(alone(folder, *torchrun, *words, "--json", "--iterations", "3", "--warmup", "1"))


def test_all_ranks_in_python(job, tmp_path):
    result = launched(shutil.copytree(job, tmp_path / "alone"), "benchmark.py")
    assert result["steps"] == 3 and [row["rank"] for row in result["ranks"]] == [0, 1]
    text = (job / "step_0.py").read_text()
    assert 'reduction("MAX")' in text and "group_name(" in text and "wait(" in text and "c10d.send" in text
    assert "c10d.recv" in (job / "step_1.py").read_text()
    # The world, the group of both, and one for each rank.
    assert (job / "ranks.data").read_text().splitlines()[1] == "groups 4"


def test_all_ranks_in_cpp(built_job):
    result = launched(built_job, "--no-python", "build/benchmark")
    assert result["steps"] == 3 and all(row["wall_ms"] > 0 for row in result["ranks"])
    single = subprocess.run([built_job / "build/benchmark"], capture_output=True, text=True)
    assert single.returncode == 3 and "a job of 2 ranks: torchrun" in single.stderr


def test_another_benchmark_in_the_folder_is_replaced(made, job, tmp_path):
    folder = shutil.copytree(job, tmp_path / "bench")
    (folder / "notes.txt").write_text("mine")
    assert make(made, "job", folder).returncode == 0
    names = {path.name for path in folder.iterdir()}
    assert "one_rank.cc" in names and "step.cc" in names and "notes.txt" in names
    assert not names & {"ranks.cc", "ranks.data", "step_0.cc", "step_1.data"}


def test_names_are_kept_where_it_is_asked_for(made, tmp_path):
    assert make(made, "job", tmp_path / "named", "--keep-names").returncode == 0
    assert "# secret-loss" in (tmp_path / "named/step.py").read_text()
    assert "// secret-loss" in (tmp_path / "named/step.cc").read_text()


def test_a_folder_that_cannot_be_made(made):
    done = make(made, "job", "/proc/nothing/bench")
    assert done.returncode == 5 and "/proc/nothing/bench" in done.stderr


@pytest.mark.parametrize("name", ["README.md", "main.cc", "CMakeLists.txt"])
def test_files_that_are_of_no_benchmark_stay(made, tmp_path, name):
    for file in (name, "step_by_step.py"):
        (tmp_path / file).write_text("mine")
    done = make(made, "job", tmp_path)
    assert done.returncode == 3 and f"found {name}, which is not part of a benchmark" in done.stderr
    (tmp_path / name).unlink()
    assert make(made, "job", tmp_path).returncode == 0
    assert (tmp_path / "step_by_step.py").read_text() == "mine"


def test_data_that_are_not_there_are_said(made, tmp_path):
    assert make(made, "job", tmp_path).returncode == 0
    (tmp_path / "step.data").unlink()
    done = subprocess.run([sys.executable, tmp_path / "benchmark.py"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.endswith("step.data: No such file or directory\n")
    assert len(done.stderr.splitlines()) == 1
