"""The recorder does not affect the program, its profilers, its children and its compiler."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from conftest import HOOK_FOLDER, LIGHT, SETUP, check_traces, names_of, program
from forked_python import END_OF_RANK


def test_own_profiler_keeps_its_events(run):
    source = program(
        """
        from torch.profiler import profile, schedule, ProfilerActivity
        def ready(p):
            print(sum(1 for e in p.events() if e.name == "aten::linear"))
        plan = schedule(wait=3, warmup=2, active=3, repeat=2)
        with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready) as p:
            for _ in range(30):
                train()
                p.step()
        """
    )
    result = run(source, steps=4)
    assert result.out == "6\n6\n"
    check_traces(result)
    # Steps 3 to 7 and 11 to 15 belong to the program's profiler.
    timed = {step["index"] for step in result.rank()["timed_steps"]}
    assert not timed & {4, 5, 6, 7, 12, 13, 14}
    assert result.rank()["recorded_step"]["index"] not in range(3, 8)


def test_own_profiler_that_starts_within_the_recorded_step(run):
    result = run(
        program(
            """
            from torch.profiler import profile, ProfilerActivity
            for i in range(12):
                optimizer.zero_grad()
                if i == 5:
                    with profile(activities=[ProfilerActivity.CPU]) as p:
                        loss = model(torch.randn(5, 8)).sum()
                    print(sum(1 for e in p.events() if e.name == "aten::linear"))
                else:
                    loss = model(torch.randn(5, 8)).sum()
                loss.backward()
                optimizer.step()
            """
        )
    )
    assert result.out == "2\n"
    check_traces(result)
    assert result.rank()["recorded_step"]["index"] > 5


def test_own_observer_is_left_alone(run):
    result = run(
        program(
            """
            import json
            from torch.profiler import ExecutionTraceObserver
            observer = ExecutionTraceObserver().register_callback("mine.json")
            observer.start()
            for _ in range(10):
                train()
            observer.stop()
            observer.unregister_callback()
            print(sum(n["name"] == "aten::linear" for n in json.load(open("mine.json"))["nodes"]))
            """
        )
    )
    assert result.out == "20\n"
    assert result.names() == []
    assert result.status()["code"] == "busy"
    assert "observer" in result.status()["reason"]


def test_profiler_that_is_busy_all_the_time(run):
    result = run(
        program(
            """
            from torch.profiler import profile, ProfilerActivity
            with profile(activities=[ProfilerActivity.CPU]) as p:
                for _ in range(20):
                    train()
            print(sum(1 for e in p.events() if e.name == "aten::linear"))
            """
        )
    )
    assert result.out == "40\n"
    assert result.names() == []
    assert result.status()["code"] == "busy"


def test_own_sitecustomize_still_runs(run, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import builtins; builtins.from_site = 'here'\n")
    result = run(program("for _ in range(10): train()\nprint(from_site)"), path=[folder])
    assert result.out == "here\n"
    check_traces(result)


LOADED = """
import os, sys
if __name__ != "__main__":
    import atexit
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, i):
        return torch.full((8,), float(i)) * 2
"""
# A loader per epoch, whose workers also start within the recorded step.
LOADING = SETUP.replace(LIGHT, "") + """
for _ in range(3):
    loader = torch.utils.data.DataLoader(
        Data(), batch_size=20, num_workers=1, multiprocessing_context=sys.argv[1])
    for batch in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
print("fine")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_data_loader_workers(run, method):
    source = LOADED + "if __name__ == '__main__':\n" + textwrap.indent(LOADING, "    ")
    result = run(source, method, steps=2, fresh=True)
    assert (result.code, result.out, result.err) == (0, "fine\n", "")
    check_traces(result)
    assert len(result.statuses()) == 1


def test_other_python_children_write_nothing(run):
    result = run(
        program(
            """
            import subprocess
            for _ in range(10):
                train()
            print(subprocess.run([sys.executable, "-c", "print('child')"],
                                 capture_output=True, text=True).stdout, end="")
            """
        )
    )
    assert result.out == "child\n"
    assert len(result.statuses()) == 1
    check_traces(result)


DISTRIBUTED = """
import torch
from torch import nn
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(12):
    optimizer.zero_grad()
    model(torch.randn(5 + dist.get_rank() * (i % 2), 8)).sum().backward()
    optimizer.step()
""" + END_OF_RANK


def test_all_ranks_of_a_torchrun_job(run):
    result = run(
        DISTRIBUTED,
        command=[
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=2",
        ],
        environment={"GLOO_SOCKET_IFNAME": "lo"},
    )
    assert result.code == 0, result.err
    assert result.names() == [
        "device.0.json.gz",
        "device.1.json.gz",
        "host.0.json.gz",
        "host.1.json.gz",
        "job.json",
    ]
    job = result.job()
    assert job["world_size"] == 2 and sorted(job["ranks"]) == ["0", "1"]
    for rank in (0, 1):
        host = check_traces(result, rank)
        assert "## process_group:init ##" in names_of(host)
        assert "c10d::allreduce_" in names_of(host)
        assert result.device(rank)["distributedInfo"]["rank"] == rank
    indices = {entry["recorded_step"]["index"] for entry in job["ranks"].values()}
    assert indices == {5}
    assert result.rank(0)["signatures"][0]["calls"][0]["module"] == "Linear"


COMPILED_FORMS = [
    ("function", "call = torch.compile(model, backend='aot_eager')", True),
    ("method", "model.compile(backend='aot_eager'); call = model", False),
    ("lambda", "call = torch.compile(lambda x: model(x), backend='aot_eager')", True),
    ("lambda", "call = torch.compile(lambda x: model(x), backend='aot_eager')", False),
]
# Trains or infers, or takes optimizer steps, with compiled code, and prints how often each function was compiled.
COMPILED = {
    (form, training): f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    def forward(self, x):
        return self.inner(x) * 2
model = Net()
{"optimizer = torch.optim.SGD(model.parameters(), lr=0.1)" if training else ""}
{line}
for _ in range(12):
    loss = call(torch.randn(5, 8)).sum()
    if {training}:
        loss.backward()
        optimizer.step()
"""
    for form, line, training in COMPILED_FORMS
}
COMPILED["step", True] = """
@torch.compile(backend="aot_eager")
def step():
    optimizer.step()
for _ in range(12):
    optimizer.zero_grad()
    model(torch.randn(5, 8)).sum().backward()
    step()
"""
# Compiled again after the modules are known.
COMPILED["again", True] = """
body = torch.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), backend="aot_eager", fullgraph=True)
head = nn.Linear(8, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for index in range(14):
    optimizer.zero_grad()
    head(body(torch.randn(5, 8) if index < 4 else torch.randn(2, 5, 8))).sum().backward()
    optimizer.step()
"""
SAY_COMPILED = """
from torch._dynamo.utils import counters
print(dict(counters["frames"]), counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
"""


@pytest.fixture(scope="module")
def plainly_compiled():
    """Returns the output of each program in COMPILED without a recorder, in one process."""
    source = SETUP + "import torch._dynamo\n"
    for body in COMPILED.values():
        source += f"{body}{SAY_COMPILED}torch._dynamo.reset(); counters.clear()\n"
        source += "model = nn.Linear(8, 4); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    return dict(zip(COMPILED, done.stdout.splitlines(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("form", "training"), COMPILED)
def test_compiled_code_stays_compiled(run, plainly_compiled, form, training):
    source = program(COMPILED[form, training] + SAY_COMPILED)
    result = run(source if training else source.replace("optimizer = ", "unused = lambda: "))
    assert result.code == 0, result.err
    assert result.out == plainly_compiled[form, training] + "\n"
    if form in ("again", "step"):
        return
    if training or form != "lambda":
        host = check_traces(result)
        assert any("Compiled" in name for name in names_of(host))
        assert result.rank()["recorded_step"]["integer_ranges"] is False
    else:
        # A compiled function calls the model, so nothing outside of it marks a step.
        assert result.status()["code"] == "no-step"


def test_exit_code_passes_through(run):
    result = run(program("for _ in range(10): train()\nsys.exit(7)"))
    assert result.code == 7
    check_traces(result)


def test_exception_passes_through(run):
    result = run(program("for _ in range(10): train()\nraise ValueError('mine')"))
    assert result.code == 1
    assert result.err.rstrip().endswith("ValueError: mine")
    assert "etude" not in result.err
    check_traces(result)


def test_os_exit_after_the_recording(run):
    result = run(program("for _ in range(10): train()\nos._exit(3)"))
    assert result.code == 3
    check_traces(result)


def test_os_exit_before_the_recording_leaves_a_status(run):
    result = run(program("for _ in range(4): train()\nos._exit(3)"))
    assert result.code == 3
    assert result.names() == []
    assert result.status()["phase"] == "timing"
    assert result.status()["complete"] is False


def test_kill_while_recording_leaves_nothing_half_written(run):
    result = run(
        program(
            """
            import signal
            for _ in range(5):
                train()
            model(torch.randn(5, 8))
            assert torch.autograd._profiler_enabled()
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    assert result.code == -signal.SIGKILL
    assert result.names() == []
    assert result.status()["phase"] == "recording"


def test_exit_while_recording_leaves_nothing(run):
    result = run(
        program(
            """
            for _ in range(5):
                train()
            model(torch.randn(5, 8))
            assert torch.autograd._profiler_enabled()
            """
        )
    )
    assert (result.code, result.err) == (0, "")
    assert result.names() == []
    assert not any(name.startswith(".tmp") for name in result.hidden())
    assert result.status()["code"] == "ended-early"


def test_fork_within_the_recorded_step_does_not_spoil_the_trace(run):
    result = run(
        program(
            """
            for i in range(10):
                if i == 5:
                    assert torch.autograd._profiler_enabled()
                    child = os.fork()
                    if child == 0:
                        for _ in range(50):
                            torch.ones(3) + 1
                        sys.exit(0)
                    os.waitpid(child, 0)
                train()
            """
        )
    )
    assert (result.code, result.err) == (0, "")
    host = check_traces(result)
    assert names_of(host).count("aten::add") < 10
    assert len(result.statuses()) == 1


def test_marks_of_other_threads_do_not_count(run):
    result = run(
        program(
            """
            import threading
            other = torch.optim.SGD([nn.Parameter(torch.zeros(2))], lr=0.1)
            for _ in range(10):
                train()
                thread = threading.Thread(target=other.step)
                thread.start()
                thread.join()
            """
        ),
        warmup=4,
    )
    check_traces(result)
    assert result.rank()["step_pattern"] == ["SGD"]
    assert any("other threads" in note for note in result.rank()["notes"])


def test_steps_while_another_thread_is_inside_its_own_step_count(run):
    result = run(
        program(
            """
            import threading
            inside, leave = threading.Event(), threading.Event()

            class Slow(torch.optim.SGD):
                def step(self):
                    inside.set()
                    assert leave.wait(60)

            train()
            thread = threading.Thread(target=Slow([nn.Parameter(torch.zeros(2))], lr=0.1).step)
            thread.start()
            inside.wait(60)
            for _ in range(9):
                train()
            leave.set()
            thread.join()
            train()
            """
        )
    )
    check_traces(result)
    assert result.rank()["step_pattern"] == ["SGD"]
    assert [step["index"] for step in result.rank()["timed_steps"]] == [2, 3, 4]


def test_hook_without_torch_costs_little_and_says_nothing(run):
    result = run("print('hello')", fresh=True)
    assert (result.code, result.out, result.err) == (0, "hello\n", "")
    assert result.hidden() == [".etude-hook"]


@pytest.mark.parametrize("option", ["-S", "-I", "-E"])
def test_options_that_skip_the_hook(run, option):
    result = run("print('hello')", python_options=[option])
    assert result.out == "hello\n"
    assert result.hidden() == []


def test_hook_is_inert_without_a_folder(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(HOOK_FOLDER)}
    environment.pop("ETUDE_RECORD_DIR", None)
    text = "import sys; print([f for f in sys.meta_path if 'Torch' in type(f).__name__])"
    line = [sys.executable, "-c", text]
    assert subprocess.run(line, env=environment, capture_output=True, text=True).stdout == "[]\n"
