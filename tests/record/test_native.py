"""The native recorder: the same structure as PyTorch's observer, exact values, and robust files."""

import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import LIGHT, SETUP, attributes, program
from forked_python import END_OF_RANK

BIN = pathlib.Path(os.environ["ETUDE_BIN"])
LIBRARY = (BIN.parent / "lib/etude/libetude_recorder.so").resolve()
NATIVE = {"ETUDE_RECORD_RECORDER": "native", "ETUDE_RECORD_LIBRARY": str(LIBRARY)}

# For programs that use the library directly.
DRIVE = f"""
import ctypes
native = ctypes.CDLL({str(LIBRARY)!r})
for name in ("start", "stop"):
    getattr(native, "etude_recorder_" + name).restype = ctypes.c_char_p
def start(path, ranges=1, memory=0, callback=0, values=0):
    problem = native.etude_recorder_start(os.fsencode(path), b'"pid": %d' % os.getpid(), ranges,
                                          ctypes.c_ulonglong(0), memory, callback,
                                          ctypes.c_ulonglong(values))
    assert problem is None, problem
def stop():
    problem = native.etude_recorder_stop()
    assert problem is None, problem
"""


def etude(*arguments, code=0):
    done = subprocess.run([BIN / "etude", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


def info(path):
    return json.loads(etude("info", "--json", path))["traces"][0]


def linked(path, tmp_path):
    """Returns the capture's nodes from linked JSON."""
    target = tmp_path / "linked.json"
    etude("convert", "-q", path, "-o", target)
    return json.loads(target.read_text())["nodes"]


def only(nodes, name):
    (found,) = [node for node in nodes if node["name"] == name]
    return found


def operators(nodes):
    """Returns how often each operator is below which caller."""
    names = {node["id"]: node["name"] for node in nodes}
    return collections.Counter(
        (node["name"], attributes(node).get("op_schema"), names.get(node["ctrl_deps"]))
        for node in nodes
        if attributes(node).get("op_schema")
    )


def test_the_same_operators_as_the_observer(run, tmp_path):
    source = program("for _ in range(12): train()")
    observed = run(source).host()["nodes"]
    for path in (tmp_path / "capture").iterdir():
        path.unlink()
    # The observer has no labels of modules.
    result = run(source, environment={**NATIVE, "ETUDE_RECORD_MODULES": "0"})
    assert (result.code, result.err) == (0, "")
    assert result.names() == ["capture.0.etude", "job.json"]
    assert result.rank()["native"] == "capture.0.etude" and "host" not in result.rank()
    nodes = linked(result.folder / "capture.0.etude", tmp_path)
    # The observer's own step mark has another number only if the steps differ.
    assert operators(nodes) == operators(observed)
    facts = info(result.folder / "capture.0.etude")
    assert facts["kind"] == "native" and facts["rank"] == 0
    assert not any(name.startswith(".tmp") for name in result.hidden())


def test_times_nest(run, tmp_path):
    result = run(program("for _ in range(12): train()"), environment=NATIVE)
    nodes = linked(result.folder / "capture.0.etude", tmp_path)
    by_id = {node["id"]: node for node in nodes}
    timed = [node for node in nodes if node.get("inclusive_dur") is not None and "ts" in node]
    assert len(timed) > 50
    for node in timed:
        caller = by_id[node["ctrl_deps"]]
        if "ts" not in caller or caller.get("inclusive_dur") is None:
            continue
        assert caller["ts"] <= node["ts"]
        end = node["ts"] + node["inclusive_dur"]
        assert end <= caller["ts"] + caller["inclusive_dur"] + 0.002


def test_replays(run):
    result = run(program("for _ in range(12): train()"), environment=NATIVE)
    assert "100.0 %" in etude("replay", "--iterations", 3, result.folder)


def test_python_numbers_promote_as_they_did(run):
    # An integer tensor times a number is a float32 tensor. If the number were another double tensor, the result would
    # be a double, and could not be multiplied with the weight.
    result = run(
        program(
            """
            for _ in range(12):
                optimizer.zero_grad()
                model(torch.arange(8).reshape(1, 8) * 0.5).sum().backward()
                optimizer.step()
            """
        ),
        environment=NATIVE,
    )
    assert "(100.0 %)" in etude("replay", "--iterations", 3, result.folder)


def test_complex_numbers_replay(run):
    result = run(
        program(
            """
            for _ in range(12):
                torch.add(torch.full((3,), 2 - 1.5j), 1 + 1j, alpha=2j)
                train()
            """
        ),
        environment=NATIVE,
    )
    report = json.loads(etude("replay", "--iterations", 3, "--json", result.folder))
    assert report["skipped"] == [] and report["coerced"]["assumed_values"] == 0


def test_exact_values(run, tmp_path):
    path = tmp_path / "values.etude"
    source = DRIVE + """
x = torch.ones(3)
start(PATH)
torch.add(x, x, alpha=1e-9)
torch.ops.aten.upsample_nearest1d(torch.ones(1, 1, 3), [6], 2.000000001)
torch.cat([x] * 5000)
torch.full((2,), 2 - 1.5j)
torch.nn.functional.embedding(torch.tensor([[3, 1], [4, 4]]), torch.ones(6, 2))
torch.empty(3, dtype=torch.int64)
stop()
"""
    run(LIGHT + "import torch\n" + source.replace("PATH", repr(str(path))), hook=False)
    nodes = linked(path, tmp_path)
    adds = [node for node in nodes if node["name"] == "aten::add"]
    assert adds[0]["inputs"]["values"][2] == 1e-9
    up = only(nodes, "aten::upsample_nearest1d")
    assert up["inputs"]["values"][2] == 2.000000001
    assert only(nodes, "aten::full")["inputs"]["values"][1] == "(2, -1.5)"
    assert len(only(nodes, "aten::cat")["inputs"]["values"][0]) == 5000
    assert json.loads(attributes(only(nodes, "aten::embedding"))["tensor_range"]) == {"1": [1, 4]}


def test_strides_of_dimensions_of_size_1(run, tmp_path):
    # Strides determine the layout that convolutions choose for results. PyTorch calls such a tensor contiguous.
    path = tmp_path / "strides.etude"
    source = DRIVE + """
start(PATH)
torch.relu(torch.empty_strided((4, 1, 28, 28), (784, 1, 28, 1)))
torch.neg(torch.empty(4, 1, 28))
torch.abs(torch.empty(0, 5))
stop()
"""
    run(LIGHT + "import torch\n" + source.replace("PATH", repr(str(path))), hook=False)
    nodes = linked(path, tmp_path)
    first = {node["name"]: node for node in reversed(nodes)}
    strides = [first[name]["inputs"]["strides"][0] for name in ("aten::relu", "aten::neg", "aten::abs")]
    assert strides == [[784, 1, 28, 1], [28, 28, 1], [5, 1]]


def test_a_label_of_gloo_that_ends_late_has_its_end(run, tmp_path):
    # Gloo's thread wakes waiting threads first, and may then not run for a while. The recorder waits some milliseconds
    # for the end. If the machine does not run the thread in this time, the end is missed, but not each time.
    path = tmp_path / "late"
    source = DRIVE + """
import threading, time
def work(begun):
    with torch.autograd.profiler.record_function("gloo:all_reduce"):
        begun.set()
        time.sleep(0.002)
for attempt in range(10):
    begun = threading.Event()
    start(f"{PATH}.{attempt}.etude")
    thread = threading.Thread(target=work, args=(begun,))
    thread.start()
    begun.wait()
    stop()
    thread.join()
"""
    result = run(LIGHT + "import torch\n" + source.replace("{PATH}", str(path)), hook=False)
    assert result.code == 0, result.err
    captures = [linked(f"{path}.{attempt}.etude", tmp_path) for attempt in range(10)]
    labels = [node for nodes in captures for node in nodes if node["name"] == "gloo:all_reduce"]
    assert any(label.get("inclusive_dur", 0) > 1000 for label in labels)


def test_statistics_of_indices(run, tmp_path):
    path = tmp_path / "indices.etude"
    source = DRIVE + """
def record(integers):
    start(PATH + str(integers), integers)
    bag(indices, offsets)
    torch.bincount(indices)
    stop()
bag = torch.nn.EmbeddingBag(1000, 4)
weights = torch.arange(1, 1001, dtype=torch.float64) ** -1.2
torch.manual_seed(1)
indices = torch.multinomial(weights, 20000, replacement=True)
indices[0], indices[1] = 0, 999
offsets = torch.arange(0, 20000, 10)
for integers in (1, 2, 3): record(integers)
"""
    run(LIGHT + "import torch\n" + source.replace("PATH", repr(str(path))), hook=False)
    ranges, indices, all_integers = (linked(f"{path}{i}", tmp_path) for i in (1, 2, 3))
    assert not any("index_statistics" in attributes(node) for node in ranges)
    of_bag = json.loads(attributes(only(indices, "aten::_embedding_bag"))["index_statistics"])
    assert set(of_bag) == {"1", "2"}
    assert of_bag["1"]["elements"] == 8192 and not of_bag["1"]["ascends"]
    assert abs(of_bag["1"]["skew"] - 1.2) < 0.05
    # 2000 values in a range of 19991: if they were drawn, 100 pairs would be equal.
    assert of_bag["2"] == {"elements": 2000, "distinct": 2000, "equal_pairs": 0, "ascends": True, "skew": 0}
    assert "index_statistics" not in attributes(only(indices, "aten::bincount"))
    assert "index_statistics" in attributes(only(all_integers, "aten::bincount"))
    # The same through Chakra.
    etude("convert", "-q", f"{path}2", "-o", tmp_path / "chakra.0.et")
    again = only(linked(tmp_path / "chakra.0.et", tmp_path), "aten::_embedding_bag")
    assert json.loads(attributes(again)["index_statistics"]) == of_bag


def test_values_of_indices(run, tmp_path):
    path = tmp_path / "values.etude"
    source = DRIVE + """
def record(name, values):
    start(PATH + name, 2, values=values)
    torch.index_select(torch.ones(6, 2), 0, indices.t()[1])
    torch.gather(torch.ones(9), 0, torch.tensor([7, 7]))
    stop()
indices = torch.tensor([[3, 1], [4, 5], [0, 2]], dtype=torch.int32)
record("all", 1000)
record("some", 12)
record("none", 0)
"""
    result = run(LIGHT + "import torch\n" + source.replace("PATH", repr(str(path))), hook=False)
    assert result.code == 0, result.err

    def values(name, operator):
        text = attributes(only(linked(f"{path}{name}", tmp_path), operator)).get("index_values")
        return text if text is None else json.loads(text)

    # In the order of the tensor, whose memory has other values in between.
    assert values("all", "aten::index_select") == {"1": [1, 5, 2]}
    assert values("all", "aten::gather") == {"1": [7, 7]}
    # The first tensor has twelve bytes. Further tensors are left out.
    assert values("some", "aten::index_select") == {"1": [1, 5, 2]}
    assert values("some", "aten::gather") is None and values("none", "aten::index_select") is None
    etude("convert", "-q", f"{path}all", "-o", tmp_path / "chakra.0.et")
    again = only(linked(tmp_path / "chakra.0.et", tmp_path), "aten::index_select")
    assert json.loads(attributes(again)["index_values"]) == {"1": [1, 5, 2]}


def test_allocations(run, tmp_path):
    path = tmp_path / "memory.etude"
    source = DRIVE + """
import threading
before = torch.ones(1000)
start(PATH, 1, 1)
kept = torch.empty(1 << 20)                 # 4 MiB
passing = torch.empty(1 << 18)              # 1 MiB
thread = threading.Thread(target=lambda tensors: tensors.clear(), args=([passing],))
thread.start(); del passing; thread.join()
del before
small = torch.zeros(10) + 1
grows = torch.empty(4)
stop()
assert torch.empty(3).sum() is not None     # after the recording all is as before
grows.resize_(5000).fill_(1); kept.resize_(1 << 21); small.add_(1)
del kept, small, grows
start(PATH + ".second", 1, 1)
torch.empty(100)
stop()
images, filters = torch.randn(8, 3, 32, 32), torch.randn(16, 3, 3, 3)
torch.conv2d(images, filters)
start(PATH + ".third", 1, 1)
torch.conv2d(images, filters)               # oneDNN asks for memory and frees it in a way of its own
stop()
"""
    result = run(LIGHT + "import torch\n" + source.replace("PATH", repr(str(path))), hook=False)
    assert (result.code, result.err) == (0, "")

    def allocator(file):
        rows = json.loads(etude("memory", "--json", file))["summary"]
        (row,) = [row for row in rows if row["source"] == "allocator"]
        return row

    cpu = allocator(path)
    assert cpu["device"] == "cpu" and cpu["peak_bytes"] >= 5 << 20 and cpu["start_bytes"] is None
    assert cpu["peak_bytes"] < (5 << 20) + 4096
    # The kept tensor, and the results of two additions. The tensor that was freed on the other thread is not among
    # them.
    assert 4 << 20 <= cpu["end_bytes"] < (4 << 20) + 4096
    second, third = allocator(f"{path}.second"), allocator(f"{path}.third")
    assert (second["peak_bytes"], second["end_bytes"]) == (400, 0)
    assert third["allocations"] > 1 and third["end_bytes"] == 0
    etude("validate", "--strict", path)


def test_allocations_beside_the_profiler(run, tmp_path):
    # A profiler of the program that counts memory sees the same with our allocator before its own.
    path = tmp_path / "memory.etude"
    source = DRIVE + """
def total():
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        x = torch.empty(1000); del x; y = [torch.ones(50) for _ in range(3)]; del y
    return [(event.key, event.self_cpu_memory_usage) for event in p.key_averages()]
alone = total()
start(PATH, 1, 1)
both = total()
stop()
assert alone == both, (alone, both)
assert alone == total()
"""
    result = run(LIGHT + "import torch\n" + source.replace("PATH", repr(str(path))), hook=False)
    assert result.code == 0, result.err


@pytest.mark.parametrize("recorder", ["native", "observers"])
def test_memory_of_a_step(run, recorder):
    environment = {**NATIVE, "ETUDE_RECORD_RECORDER": recorder, "ETUDE_RECORD_MEMORY": "1"}
    result = run(program("for _ in range(12): train()"), environment=environment)
    memory = json.loads(etude("memory", "--json", result.folder))
    (cpu,) = [row for row in memory["summary"] if row["source"] == "allocator"]
    assert cpu["allocations"] > 10 and cpu["peak_bytes"] > 500
    etude("replay", "--iterations", 2, result.folder)
    if recorder == "observers":
        return
    # PyTorch's observer has no allocator events, but its profiler has.
    pair = result.folder.parent / "pair"
    etude("convert", "--to", "pytorch", "-q", result.folder / "capture.0.etude", "-o", pair)
    assert "[memory]" not in (pair / "host.0.json").read_text()
    tables = json.loads(etude("memory", "--json", pair))["summary"]
    (same,) = [row for row in tables if row["source"] == "allocator"]
    keys = ("peak_bytes", "start_bytes", "end_bytes", "allocations")
    assert [same[key] for key in keys] == [cpu[key] for key in keys]


def test_what_calling_costs(run, tmp_path):
    result = run(program("for _ in range(12): train()"), environment=NATIVE)
    path = result.folder / "capture.0.etude"
    etude("convert", "-q", path, "-o", tmp_path / "linked.json")
    assert 0 <= json.loads((tmp_path / "linked.json").read_text())["callback_ns"] < 100_000
    path.unlink(), (result.folder / "job.json").unlink()
    run(program("for _ in range(12): train()"), environment={**NATIVE, "ETUDE_RECORD_CALLBACK_COST": "0"})
    etude("convert", "-q", path, "-o", tmp_path / "kept.json")
    assert "callback_ns" not in json.loads((tmp_path / "kept.json").read_text())


def test_growing_file_survives_a_kill(run, tmp_path):
    path = tmp_path / "growing.etude"
    result = run(
        program(
            DRIVE
            + f"""
            start({str(path)!r})
            for _ in range(300):
                train()
            print(os.path.getsize({str(path)!r}), flush=True)
            os.kill(os.getpid(), 9)
            """.replace("\n            ", "\n")
        ),
        hook=False,
    )
    assert result.code == -signal.SIGKILL
    facts = info(path)
    assert facts["nodes"] > 1000
    assert facts["health"]["truncated"] == 1
    etude("info", "--strict", path, code=3)


def test_calls_of_other_threads_are_no_steps_and_hide_none(run):
    """Runs a model on two threads at once: the steps of one are found, and those of the other are reported.

    Uses the native recorder, because PyTorch's observer may abort if it ends while other threads run.
    """
    source = program(
        """
        import threading
        together = threading.Barrier(2)
        def infer():
            with torch.no_grad():
                for _ in range(80):
                    together.wait()
                    model(torch.randn(5, 8))
        with torch.no_grad():
            for _ in range(12):  # the modules are known then
                model(torch.randn(5, 8))
        thread = threading.Thread(target=infer)
        thread.start()
        infer()
        thread.join()
        """
    ).replace("optimizer = ", "unused = lambda: ")
    result = run(source, warmup=20, environment=NATIVE)
    assert result.code == 0, result.err
    rank = result.rank()
    assert rank["step_kind"] == "module"
    assert any("on other threads were not counted as steps" in note for note in rank["notes"])


def test_children_and_threads(run, tmp_path):
    path = tmp_path / "threads.etude"
    result = run(
        program(
            DRIVE
            + f"""
            import threading
            def train_own():
                own = nn.Linear(8, 4)
                optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
                own(torch.randn(5, 8)).sum().backward()
                optimizer.step()
            os.register_at_fork(after_in_child=native.etude_recorder_cut_off_child)
            start({str(path)!r})
            threads = [threading.Thread(target=train_own) for _ in range(3)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            child = os.fork()
            if child == 0:
                for _ in range(50): train()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            train()
            stop()
            start({str(path)!r} + ".second")
            train()
            stop()
            """.replace("\n            ", "\n")
        ),
        hook=False,
    )
    assert (result.code, result.err) == (0, "")
    nodes = linked(path, tmp_path)
    steps = [node for node in nodes if node["name"] == "Optimizer.step#SGD.step"]
    assert len(steps) == 4
    assert len({attributes(node)["tid"] for node in steps}) == 4
    second = linked(str(path) + ".second", tmp_path)
    assert sum(node["name"] == "Optimizer.step#SGD.step" for node in second) == 1


HARD = {
    "data loader workers": """
        light_torch.load()
        data = torch.utils.data.TensorDataset(torch.randn(40, 8), torch.randn(40, 4))
        for x, y in torch.utils.data.DataLoader(data, batch_size=2, num_workers=2):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        """,
    "checkpointing": """
        from torch.utils.checkpoint import checkpoint
        for _ in range(12):
            optimizer.zero_grad()
            checkpoint(model, torch.randn(5, 8), use_reentrant=False).sum().backward()
            optimizer.step()
        """,
    "autocast": """
        for _ in range(12):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.randn(5, 8)).float().sum()
            loss.backward()
            optimizer.step()
        """,
    "tensor subclass": """
        class Mine(torch.Tensor): pass
        for _ in range(12):
            optimizer.zero_grad()
            model(torch.randn(5, 8).as_subclass(Mine)).sum().backward()
            optimizer.step()
        """,
    "sparse, complex, meta, half, nested": """
        embedding = nn.Embedding(9, 8, sparse=True)
        for _ in range(12):
            optimizer.zero_grad()
            model(embedding(torch.tensor([1, 2]))).sum().backward()
            (torch.ones(2, dtype=torch.complex64) * (1 + 2j)).abs()
            torch.ones(4, device="meta") + 1
            torch.ones(3).half().float()
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).sum
            optimizer.step()
        """,
    "compiled": """
        compiled = torch.compile(model, backend="aot_eager")
        for _ in range(12):
            optimizer.zero_grad()
            compiled(torch.randn(5, 8)).sum().backward()
            optimizer.step()
        """,
}


@pytest.mark.parametrize("kind", HARD)
def test_hard_programs(run, tmp_path, kind):
    result = run(program(HARD[kind].replace("\n        ", "\n")), environment=NATIVE)
    assert result.code == 0, result.err
    assert result.names() == ["capture.0.etude", "job.json"], result.err
    etude("validate", "--strict", result.folder / "capture.0.etude")
    nodes = linked(result.folder / "capture.0.etude", tmp_path)
    assert any(node["name"] == "Optimizer.step#SGD.step" for node in nodes)
    if kind == "autocast":
        assert any(node.get("autocast") is True for node in nodes)


# A failure inside of a recording, which the native recorder does not notice.
FAILS = """
def fails(*_): raise ValueError("odd")
def record_one():
    for _ in range(12): train()
    start(os.path.join(os.environ["CAPTURE"], "mine"))
    stop()
"""


def test_a_recording_that_fails_as_it_starts_is_ended(run):
    source = """
from _etude_recording.module_labels import ModuleLabels
ModuleLabels.start = fails
record_one()
"""
    result = run(program(DRIVE + FAILS + source), environment=NATIVE)
    assert result.code == 0, result.err
    assert result.names() == ["mine"] and "ValueError: odd" in result.status()["reason"]
    assert not any(name.startswith(".tmp") for name in result.hidden())


def test_without_the_library_the_observers_record(run):
    source = program("for _ in range(12): train()")
    result = run(source, environment={"ETUDE_RECORD_RECORDER": "native"})
    assert result.names() == ["device.0.json.gz", "host.0.json.gz", "job.json"]
    assert any("native recorder was not built" in note for note in result.rank()["notes"])


# "Builds" the recorder: the result of the build exists here already.
CMAKE = f"""#!/bin/sh
echo "$@" >> "$ASKED"
[ ! -e "$ASKED.broken" ] || exit 1
case $1 in
  --build) mkdir -p "$2/lib/etude"; cp "{LIBRARY}" "$2/lib/etude/" ;;
esac
"""


@pytest.fixture
def elsewhere(tmp_path):
    """elsewhere(command...): `etude record --recorder native` in a place where no recorder is installed."""
    (tmp_path / "bin").mkdir()
    shutil.copy(BIN / "etude", tmp_path / "bin/etude")
    (tmp_path / "bin/cmake").write_text(CMAKE)
    (tmp_path / "bin/cmake").chmod(0o755)
    (tmp_path / "program.py").write_text(program("for _ in range(12): train()"))
    values = {key: value for key, value in os.environ.items() if not key.startswith("ETUDE_")}
    values.update(PATH=f"{tmp_path}/bin:{os.environ['PATH']}", ASKED=str(tmp_path / "asked"),
                  ETUDE_CACHE_DIR=str(tmp_path / "cache"), OMP_NUM_THREADS="1")  # fmt: skip

    def run_etude(*arguments, folder="capture"):
        if "--" in arguments:
            arguments = ("--recorder", "native", "--warmup", "2", "--steps", "3", "-o", folder, *arguments)
        done = subprocess.run(
            [tmp_path / "bin/etude", "record", *arguments], cwd=tmp_path, env=values,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        names = sorted(p.name for p in (tmp_path / folder).iterdir()) if (tmp_path / folder).exists() else []
        return done, names

    return run_etude


def test_a_recorder_is_built_before_the_program_starts(elsewhere, tmp_path):
    done, names = elsewhere("--", sys.executable, "program.py")
    assert done.returncode == 0 and "building etude-recorder for torch" in done.stderr
    assert names == ["capture.0.etude", "job.json"]
    configure, build = (tmp_path / "asked").read_text().splitlines()
    assert f"-DETUDE_TORCH_PYTHON={sys.executable}" in configure and "--target etude_recorder" in build
    # The next program finds it, also one whose Python is unknown beforehand.
    done, names = elsewhere("--", "sh", "-c", f"{sys.executable} program.py", folder="second")
    assert done.returncode == 0 and "building" not in done.stderr
    assert names == ["capture.0.etude", "job.json"]
    assert len((tmp_path / "asked").read_text().splitlines()) == 2


def test_a_launcher_is_a_script_of_python(elsewhere, tmp_path):
    (tmp_path / "bin/launch").write_text("#!/usr/bin/env python3\n")
    (tmp_path / "bin/launch").chmod(0o755)
    (tmp_path / "bin/python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "bin/python3").chmod(0o755)
    done, _ = elsewhere("--", "launch")
    assert "building etude-recorder" in done.stderr


def test_where_it_cannot_be_built_the_observers_record(elsewhere, tmp_path):
    (tmp_path / "asked.broken").touch()
    done, names = elsewhere("--", sys.executable, "program.py")
    assert done.returncode == 0 and "building etude-recorder failed" in done.stderr
    assert "recording with PyTorch's observers" in done.stderr
    assert names == ["device.0.json.gz", "host.0.json.gz", "job.json"]


def test_a_shell_script_is_told_how_to_build_ahead(elsewhere, tmp_path):
    done, names = elsewhere("--", "sh", "-c", f"{sys.executable} program.py")
    assert names == ["device.0.json.gz", "host.0.json.gz", "job.json"]
    assert f"etude record --build-recorder {sys.executable}" in done.stderr
    done, _ = elsewhere("--build-recorder", sys.executable)
    assert done.returncode == 0 and done.stdout.strip().endswith("/libetude_recorder.so")
    done, names = elsewhere("--", "sh", "-c", f"{sys.executable} program.py", folder="second")
    assert names == ["capture.0.etude", "job.json"]


def test_of_another_torch(run, tmp_path):
    # A library that reports another version.
    other = tmp_path / "other.so"
    version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"],
                             capture_output=True, text=True, check=True).stdout.strip().encode()  # fmt: skip
    data = LIBRARY.read_bytes()
    assert data.count(version + b"\0") >= 1
    other.write_bytes(data.replace(version + b"\0", b"9" + version[1:] + b"\0"))
    result = run(program("for _ in range(12): train()"),
                 environment={**NATIVE, "ETUDE_RECORD_LIBRARY": str(other)})  # fmt: skip
    assert result.names() == ["device.0.json.gz", "host.0.json.gz", "job.json"]
    assert any("was built for torch 9" in note for note in result.rank()["notes"])


def test_a_full_disk_is_said(run, tmp_path):
    result = run(
        program(
            DRIVE
            + """
            problem = native.etude_recorder_start(b"/dev/full", b"", 0, ctypes.c_ulonglong(0), 0, 0, ctypes.c_ulonglong(0))
            print(problem.decode())
            """.replace("\n            ", "\n")
        ),
        hook=False,
    )
    assert "No space left" in result.out


def test_process_groups(tmp_path):
    script = tmp_path / "ddp.py"
    script.write_text(
        SETUP
        + """
import torch.distributed as dist
dist.init_process_group("gloo")
group = dist.new_group([0, 1])
model = nn.parallel.DistributedDataParallel(model)
for _ in range(12):
    loss = train()
    dist.all_reduce(loss.detach(), op=dist.ReduceOp.MAX, group=group)
    dist.reduce(torch.ones(1000), 1, group=group)
assert "etude" not in str(dist.Work.wait.__module__)  # as it was before the recording
"""
        + END_OF_RANK
    )
    folder = tmp_path / "capture"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    done = subprocess.run(
        [BIN / "etude", "record", "--recorder", "native", "--warmup", "2", "--steps", "3", "-o", folder,
         "--", *torchrun, script],
        capture_output=True, text=True, timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in folder.glob("capture.*")) == ["capture.0.etude", "capture.1.etude"]
    nodes = linked(folder / "capture.0.etude", tmp_path)
    reductions = [node for node in nodes if node["name"] == "c10d::allreduce_"]
    assert len(reductions) == 2
    texts = [json.dumps(node["inputs"]["values"]) for node in reductions]
    assert any("<ReduceOp> MAX" in text for text in texts)
    assert any("<ReduceOp> MAX" not in text for text in texts)
    stats = json.loads(etude("stats", "--json", folder / "capture.0.etude"))
    groups = {row["group"] for row in stats["communication"]}
    assert len(groups) == 2
    assert attributes(only(nodes, "gloo:reduce"))["comm_root"] == 1
    assert sum(node["name"] == "torch.distributed.Work.wait" for node in nodes) == 2
    simulated = json.loads(etude("simulate", folder, "--network", "Ring(2):1GB/s,1us", "--json"))
    assert "reduce" in {row["type"] for row in simulated["collectives"]}
    assert not any("root" in note for note in simulated["notes"])
