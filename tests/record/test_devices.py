"""The native recorder with a profile of the devices.

There is no GPU. The program pretends to use CUDA, and a replacement profiler records runtime calls of operators, on
the wall clock and with CUPTI's thread ids, in the form that Kineto writes.
"""

import gzip
import json
import subprocess

import pytest
from conftest import program
from test_native import BIN, DRIVE, FAILS, NATIVE, attributes, etude, info, linked


FAKE = r'''
import ctypes, json, threading, time

BASE = 1_700_000_000_000_000_000

class Event:
    def __init__(self, enable_timing=False): pass
    def record(self): self.at = time.perf_counter_ns()
    def elapsed_time(self, other): return (other.at - self.at) / 1e6

torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
torch.cuda.synchronize = lambda *_: None
torch.cuda.device_count = lambda: 0
torch.cuda.Event = Event

calls = []
profiles = []
wall_clock = 0  # ns that it is ahead of the monotonic one, as a profile begins: it may step

def launch(name, kernels):
    """A call of the runtime that takes 20 us and launches kernels of 10 us each, one after the other."""
    begin = time.monotonic_ns() + wall_clock
    while time.monotonic_ns() + wall_clock < begin + 20_000: pass
    thread = abs(ctypes.c_int32(threading.get_ident()).value)
    calls.append((name, thread, begin, kernels))

class Profile:
    def __init__(self, activities, **options):
        profiles.append([str(activity).split(".")[-1] for activity in activities])
    def start(self):
        global wall_clock
        wall_clock = time.time_ns() - time.monotonic_ns()
        calls.clear()
    def stop(self): pass
    def export_chrome_trace(self, path):
        events = []
        def add(category, name, pid, tid, start, duration, correlation, **args):
            events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
                           "ts": (start - BASE) / 1000, "dur": duration / 1000,
                           "args": {"correlation": correlation, **args}})
        for correlation, (name, thread, begin, kernels) in enumerate(calls, 1):
            add("cuda_runtime", name, os.getpid(), thread, begin, 20_000, correlation)
            for i, kernel in enumerate(kernels):
                add("kernel", kernel, 0, 7, begin + 25_000 + 11_000 * i, 10_000, correlation, device=0, stream=7)
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "baseTimeNanoseconds": BASE, "traceEvents": events}, file, indent=1)

torch.profiler._KinetoProfile = Profile

@torch.library.custom_op("test::work", mutates_args=())
def work(x: torch.Tensor, name: str) -> torch.Tensor:
    launch("cudaLaunchKernel", [name])
    return x.clone()

class Works(nn.Module):
    def forward(self, x):
        return work(x, "in_module")

works = Works()

def step():
    train()
    with torch.no_grad():
        work(torch.ones(3), "alone")
        works(torch.ones(3))
    with torch.autograd.profiler.record_function("replay of a graph"):
        launch("cudaGraphLaunch", ["first of graph", "second of graph"])
    thread = threading.Thread(target=lambda: work(torch.ones(3), "in_thread"))
    thread.start()
    thread.join()
'''


def record(run, environment, text=""):
    result = run(program(FAKE + "for _ in range(12): step()\n" + text), environment=environment)
    assert result.code == 0, result.err
    return result


@pytest.fixture
def job(run):
    result = record(run, NATIVE, 'print(json.dumps(profiles))\n')
    assert json.loads(result.out) == [["CUDA"]]
    return result


def test_both_files_are_one_capture(job, tmp_path):
    assert job.names() == ["capture.0.etude", "device.0.json.gz", "job.json"]
    rank = job.rank()
    assert (rank["native"], rank["device"]) == ("capture.0.etude", "device.0.json.gz")
    assert rank["notes"] == [] and all("device_ns" in step for step in rank["timed_steps"])
    etude("link", "-q", job.folder, "-o", tmp_path)
    nodes = json.loads((tmp_path / "linked.0.json").read_text())["nodes"]
    names = {node["id"]: node["name"] for node in nodes}
    kernels = {node["name"]: node for node in nodes if node.get("cat") == "kernel"}
    assert {name: names[node["ctrl_deps"]] for name, node in kernels.items()} == {
        "alone": "test::work",
        "in_module": "test::work",
        "in_thread": "test::work",
        "first of graph": "replay of a graph",
        "second of graph": "replay of a graph",
    }
    assert all(node["inclusive_dur"] == 10 for node in kernels.values())
    # A kernel begins 25 us after its call, which is inside its operator.
    by_id = {node["id"]: node for node in nodes}
    for node in kernels.values():
        parent = by_id[node["ctrl_deps"]]
        first = parent["ts"] + 25 <= node["ts"]
        assert first and node["ts"] <= parent["ts"] + parent["inclusive_dur"] + 40


def test_modules_have_time_on_devices(job):
    rows = {row["module"]: row for row in json.loads(etude("stats", "--json", job.folder))["modules"]}
    assert (rows["nn.Module: Works"]["device_ops"], rows["nn.Module: Works"]["device_ns"]) == (1, 10_000)


def test_graphs_are_one_launch(job, tmp_path):
    pair = tmp_path / "pair"
    etude("convert", "-q", "--to", "pytorch", job.folder, "-o", pair)
    events = json.loads((pair / "device.0.json").read_text())["traceEvents"]
    nodes = json.loads((pair / "host.0.json").read_text())["nodes"]
    launches = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert len(launches) == 4 and len(kernels) == 5
    of_graph = {launches[k["args"]["correlation"]]["name"] for k in kernels if "of graph" in k["name"]}
    assert of_graph == {"cudaGraphLaunch"}
    for launch in launches.values():
        around = [e["name"] for e in events if e.get("cat") in ("cpu_op", "user_annotation")
                  and e["tid"] == launch["tid"]
                  and e["ts"] <= launch["ts"] and launch["ts"] + launch["dur"] <= e["ts"] + e["dur"]]  # fmt: skip
        assert "test::work" in around or "replay of a graph" in around
    # The operators of both files are the same, and only the profile has devices.
    assert not any(node["name"] in ("alone", "cudaLaunchKernel") for node in nodes)
    ids = {e["args"]["Record function id"] for e in events if "Record function id" in e.get("args", {})}
    operators = [node for node in nodes if attributes(node).get("op_schema")]
    assert operators and all(attributes(node)["rf_id"] in ids for node in operators)
    # The result is a pair like any other.
    again = tmp_path / "again.json"
    etude("link", "-q", pair / "host.0.json", pair / "device.0.json", "-o", again)
    kinds = [node.get("cat") for node in json.loads(again.read_text())["nodes"]]
    assert kinds.count("kernel") == 5


def test_the_pair_is_one_for_chakras_tools(job, tmp_path):
    etude("convert", "-q", "--to", "pytorch", job.folder, "-o", tmp_path)
    pair = (tmp_path / "host.0.json", tmp_path / "device.0.json")
    etude("link", "--compat", "chakra-1.0.0", *pair, "-o", tmp_path / "linked.json")
    etude("convert", "--compat", "chakra-1.0.0", tmp_path / "linked.json", "-o", tmp_path / "chakra.0.et")
    assert info(tmp_path / "chakra.0.et")["kind"] == "chakra"


@pytest.mark.parametrize("command", ["info", "stats", "breakdown", "critical-path", "memory"])
def test_every_command_reads_it(job, command):
    report = json.loads(etude(command, "--json", job.folder))
    assert report
    if command == "breakdown":
        (stream,) = report["streams"]
        assert (stream["count"], stream["compute_ns"]) == (5, 50_000)


def test_commands_that_write(job, tmp_path):
    etude("convert", "-q", job.folder, "-o", tmp_path)
    nodes = linked(tmp_path / "chakra.0.et", tmp_path)
    assert sum(node.get("cat") == "kernel" for node in nodes) == 5
    etude("timeline", "-q", job.folder, "-o", tmp_path / "timeline.json")
    names = [event.get("name") for event in json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]]
    assert names.count("first of graph") >= 1
    etude("slice", "-q", job.folder, "--module", "Works", "-o", tmp_path / "slice")
    sliced = json.loads((tmp_path / "slice/linked.0.json").read_text())["nodes"]
    assert [node["name"] for node in sliced if node.get("cat") == "kernel"] == ["in_module"]
    etude("report", "-q", job.folder, "-o", tmp_path / "page.html")


def test_a_replay_says_what_of_the_device_work_it_lacks(job):
    """Device work launched by the program's own operators differs from that of the operators they consist of here,
    and a graph has none."""
    report = json.loads(etude("replay", "--iterations", 2, "--allow-skips", "--json", job.folder))
    assert report["coverage"]["device_time"] == 0
    reasons = {row["op"]: row["reason"] for row in report["skipped"]}
    assert "device work not launched by an operator" in reasons["replay of a graph"]


def test_a_whole_profile_beside_a_capture_is_not_joined(job):
    path = job.folder / "device.0.json.gz"
    etude("convert", "-q", job.folder, "-o", job.folder.parent / "joined")
    profile = json.loads(gzip.decompress(path.read_bytes()))
    profile["traceEvents"].append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1})
    path.write_bytes(gzip.compress(json.dumps(profile).encode()))
    etude("convert", "-q", job.folder, "-o", job.folder.parent / "alone")
    joined, alone = (info(job.folder.parent / name / "chakra.0.et")["nodes"] for name in ("joined", "alone"))
    assert joined == alone + 5
    assert "expected a profile of devices only" in refused("link", job.folder, "-o", job.folder.parent / "linked")


def refused(*arguments):
    done = subprocess.run([BIN / "etude", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 3
    return done.stderr


def test_a_profiler_that_does_not_start(run):
    source = program(FAKE + "def fails(self): raise RuntimeError('CUPTI')\nProfile.start = fails\n"
                     "for _ in range(12): step()\n")  # fmt: skip
    result = run(source, environment=NATIVE)
    assert result.code == 0 and result.names() == []
    assert "CUPTI" in result.status()["reason"]
    assert not any(name.startswith(".tmp") for name in result.hidden())


@pytest.mark.parametrize(
    "failing",
    [
        "Profile.start = lambda self: (begin(self), running.add(self), fails())",
        "import _etude_recording.device_profile as ours; ours.DeviceProfile.finish_work = fails",
    ],
)
def test_devices_that_fail_leave_no_recorder_at_work(run, failing):
    source = f"""
running = set()
begin, end = Profile.start, Profile.stop
Profile.start = lambda self: (begin(self), running.add(self))
Profile.stop = lambda self: (end(self), running.discard(self))
{failing}
record_one()
print(len(running))
"""
    result = run(program(FAKE + DRIVE + FAILS + source), environment=NATIVE)
    assert (result.code, result.out) == (0, "0\n"), result.err
    assert result.names() == ["mine"] and "ValueError: odd" in result.status()["reason"]
    assert not any(name.startswith(".tmp") for name in result.hidden())


def test_always_on(run, tmp_path):
    duty = f"dir={tmp_path / 'job'},every=5,library={NATIVE['ETUDE_RECORD_LIBRARY']}"
    source = program(FAKE + "for _ in range(12): step()\n")
    result = run(source, hook=False, environment={"ETUDE_RECORD": duty, "PYTHONPATH": hook_path()})
    assert result.code == 0, result.err
    for name in ("step-000000005", "step-000000010"):
        names = sorted(path.name for path in (tmp_path / "job" / name).iterdir())
        assert names == ["capture.0.etude", "device.0.json.gz", "job.json"]


def hook_path():
    from conftest import HOOK_FOLDER

    return str(HOOK_FOLDER)


def test_from_python(run, tmp_path):
    source = program(FAKE + """
import etude
with etude.record(os.environ["CAPTURE"], warmup=2, steps=3, recorder="native"):
    for _ in range(12): step()
""")
    result = run(source, hook=False, environment={"ETUDE_RECORD_LIBRARY": NATIVE["ETUDE_RECORD_LIBRARY"]})
    assert result.code == 0, result.err
    assert result.names() == ["capture.0.etude", "device.0.json.gz", "job.json"]
