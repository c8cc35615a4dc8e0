"""Replays of real recordings: all operators run, and read the results of their producers."""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import forked_python
import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = pathlib.Path(os.environ.get("ETUDE_SHARED_DATA", "absent"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="recorded traces are absent")
OWN_DATA = pathlib.Path(__file__).resolve().parents[1] / "data"

# Records the statements in place of BODY with PyTorch's observer.
RECORD = """
import sys, torch
from torch.profiler import ExecutionTraceObserver
torch.manual_seed(0)
{setup}
observer = ExecutionTraceObserver()
observer.register_callback(sys.argv[1])
observer.start()
{body}
observer.stop()
observer.unregister_callback()
"""


RECORDED = {}  # by program


def record(tmp_path, body, setup=""):
    """Returns the output of PyTorch's observer for a program. Each program runs once for all tests."""
    path = tmp_path / "host.json"
    body, setup = textwrap.dedent(body), textwrap.dedent(setup)
    program = RECORD.format(body=body, setup=setup)
    if program in RECORDED:
        path.write_bytes(RECORDED[program])
    else:
        (tmp_path / "program.py").write_text(program)
        done = forked_python.run([tmp_path / "program.py", path], env=os.environ, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        RECORDED[program] = path.read_bytes()
    return path


def replay(path, *options, codes=(0,), warmup=1, iterations=2):
    steps = ["--warmup", str(warmup), "--iterations", str(iterations)]
    done = subprocess.run(
        [ETUDE, "replay", path, "--json", *steps, *options],
        text=True,
        capture_output=True,
    )
    assert done.returncode in codes, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["mlp", "resnet18", "dlrm", "transformer", "lstm"])
def test_cpu_traces_replay_completely(name):
    report = replay(OWN_DATA / f"cpu/{name}_et.json.gz", warmup=0, iterations=1)
    assert report["coverage"]["ops"] == 1.0
    assert report["skipped"] == []
    assert report["values"]["non_finite_tensors"] == 0
    assert report["same_kernels"] > 0.85


def test_collectives_of_a_single_process_are_skipped_and_said(tmp_path):
    folder = shutil.copytree(OWN_DATA / "cpu/ddp_mlp", tmp_path / "ddp_mlp")
    report = replay(folder, "--rank", "0", codes=(1,), warmup=0, iterations=1)
    assert all("c10d" in row["op"] for row in report["skipped"])
    assert sum(row["count"] for row in report["skipped"]) == 3
    assert all(row["reason"] for row in report["skipped"])
    assert 0.9 < report["coverage"]["ops"] < 1.0
    assert report["coverage"]["time"] is not None
    replay(folder, "--rank", "0", "--allow-skips", warmup=0, iterations=1)
    # Folders that are not captures of Etude are left unchanged.
    assert sorted(os.listdir(folder)) == sorted(os.listdir(OWN_DATA / "cpu/ddp_mlp"))
    subprocess.run([ETUDE, "convert", "-q", folder, "-o", tmp_path / "chakra"], check=True)
    again = replay(tmp_path / "chakra", "--rank", "0", codes=(1,), warmup=0, iterations=1)
    assert again["operators"] == report["operators"]


def test_a_trace_with_a_cuda_graph_runs_on_the_cpu():
    report = replay(OWN_DATA / "gpu/graph", "--device", "cpu", codes=(1,), warmup=0, iterations=1)
    assert report["device"] == "cpu" and report["coverage"]["time"] == 1
    assert {row["op"]: row["count"] for row in report["skipped"]} == {"Graphed": 7, "GraphedBackward": 17}
    assert all("CUDA graph" in row["reason"] for row in report["skipped"])


@needs_data
@pytest.mark.parametrize(
    "name, least, options",
    [
        ("linear_et_1.0.1", 1.0, []),
        ("benchmark_simple_add_et", 1.0, []),
        # The whole workload takes minutes on a CPU.
        ("resnet_1gpu_et_1.0.3", 1.0, ["--only", "aten::batch_norm", "--only", "aten::max_pool2d"]),
    ],
)
def test_gpu_traces_run_on_the_cpu(name, least, options):
    report = replay(
        DATA / f"gpu/{name}.json.gz", "--device", "cpu", *options, codes=(0, 1), warmup=0, iterations=1
    )
    assert report["device"] == "cpu"
    assert report["coverage"]["ops"] >= least
    assert all(row["reason"] for row in report["skipped"])


FLOW = """
    a = torch.zeros(8)
    b = torch.ones(8)
    c = a * b
    d = torch.nonzero(c)
"""


def test_consumers_read_what_producers_wrote(tmp_path):
    body = FLOW.replace("d = torch.nonzero(c)", "e.add_(b / c)")
    path = record(tmp_path, body, "e = torch.ones(8)")
    # Values divided by nothing are infinite.
    assert replay(path)["values"]["non_finite_tensors"] > 0
    # With another producer upstream the same consumer must see other values.
    text = path.read_text()
    assert "aten::zeros(SymInt[] size" in text
    corrupted = tmp_path / "corrupted.json"
    corrupted.write_text(text.replace("aten::zeros", "aten::ones"))
    assert replay(corrupted)["values"]["non_finite_tensors"] == 0


def test_what_autograd_copies_is_copied(tmp_path):
    # The gradient of w needs the values that the multiplication overwrites.
    body = """
    w = torch.rand(4, 3, requires_grad=True)
    x = torch.rand(4, 3, requires_grad=True) * 2
    x.mul_(w).sum().backward()
    """
    report = replay(record(tmp_path, body), "--per-op")
    assert report["skipped"] == [] and report["replaced_by_parts"] == []
    assert report["kernels"]["missing"] == [] and report["same_kernels"] == 1.0
    rows = {row["op"]: row for row in report["per_operator"]}
    assert rows["aten::clone"]["count"] == rows["aten::mul_.Tensor"]["count"] == 1


def test_a_reused_address_is_another_tensor(tmp_path):
    body = """
        a = torch.ones(1000)
        b = a + a
        del a
        c = torch.zeros(1000)   # most likely where `a` was
        d = torch.nonzero(c)
        e = torch.nonzero(b)
    """
    assert replay(record(tmp_path, body))["coerced"]["shapes"] == 0


def test_unusual_arguments(tmp_path):
    setup = """
        x = torch.randn(4, 6)
        rows = torch.tensor([0, 2, 5])
        many = [torch.randn(3) for _ in range(4)]
        more = [torch.randn(3) for _ in range(4)]
    """
    body = """
        y = x[:, rows]                                   # None inside a list of tensors
        z = torch.clamp(x, float("-inf"), float("inf"))  # infinities
        torch._foreach_add_(many, more)                  # lists of tensors, no result
        w = torch.nan_to_num(x, nan=float("nan"))
        v = torch.cat([y, z], dim=1)
        u = torch.empty(())
        t = torch.embedding(x, rows.clamp(max=3))
    """
    report = replay(record(tmp_path, body, setup))
    assert report["coverage"]["ops"] == 1.0, report["skipped"]


def test_several_threads_fill_memory_of_every_type(tmp_path):
    """The trial of a step is a forked process, which has no threads that had begun before."""
    setup = "w = torch.randn(300, 300, dtype=torch.bfloat16)"
    report = replay(record(tmp_path, "torch.mm(w, w)", setup), "--threads", "2")
    assert report["coverage"]["ops"] == 1.0


def test_each_step_begins_with_the_recorded_form(tmp_path):
    setup = "x = torch.randn(8, 3)"
    body = """
        x.unsqueeze_(0)
        y = torch.bmm(x, x.transpose(1, 2))
        x.squeeze_(0)
        x.t_()
        z = torch.mm(x, y[0])
    """
    report = replay(record(tmp_path, body, setup), iterations=3)
    assert report["coverage"]["ops"] == 1.0
    assert report["same_kernels"] == 1.0


def test_quantized_tensors_from_outside_are_skipped_with_their_readers(tmp_path):
    setup = """
        w, x = torch.randn(4, 4), torch.randn(2, 4)
        q = torch.quantize_per_tensor(w, 0.1, 0, torch.qint8)
    """
    body = "torch.nn.functional.linear(x, q.dequantize()); torch.mm(w, w)"
    report = replay(record(tmp_path, body, setup), codes=(1,))
    assert [row["op"] for row in report["skipped"]] == ["aten::dequantize.self"]


def test_tensors_without_memory_need_no_content(tmp_path):
    setup = """
        w = torch.randn(4, 4)
        shapes = torch.nn.Linear(4, 4, device="meta")
        x = torch.empty(2, 4, device="meta")
    """
    report = replay(record(tmp_path, "torch.mm(w, w); shapes(x)", setup))
    assert report["device"] == "cpu"
    assert report["coverage"]["ops"] == 1.0


def test_unknown_operators_are_skipped_with_a_reason(tmp_path):
    path = record(tmp_path, FLOW)
    strange = tmp_path / "strange.json"
    strange.write_text(path.read_text().replace("aten::mul", "strange::mul"))
    report = replay(strange, codes=(1,))
    assert [row["op"] for row in report["skipped"]] == ["strange::mul.Tensor"]
    assert report["skipped"][0]["count"] == 1
    assert report["coverage"]["ops"] < 1.0


def test_huge_tensors_are_refused_before_they_are_made(tmp_path):
    path = record(tmp_path, FLOW)
    trace = json.loads(path.read_text())
    for node in trace["nodes"]:
        for side in ("inputs", "outputs"):
            for value, shape in zip(node[side]["values"], node[side]["shapes"]):
                if isinstance(value, list) and len(value) == 6 and shape == [8]:
                    shape[0] = value[3] = 2**60
            strides = node[side].get("strides", [])
            assert isinstance(strides, list)
    huge = tmp_path / "huge.json.gz"
    huge.write_bytes(gzip.compress(json.dumps(trace).encode()))
    done = subprocess.run([ETUDE, "replay", huge], text=True, capture_output=True)
    assert done.returncode == 3, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_state_does_not_drift(tmp_path):
    # Multiplied repeatedly with random numbers, values would become denormal numbers.
    path = record(tmp_path, "x.mul_(y)", "x, y = torch.randn(1000), torch.randn(1000)")
    report = replay(path, "--iterations", "150")
    assert report["coverage"]["ops"] == 1.0
    assert report["values"] == {"non_finite_tensors": 0, "denormal_tensors": 0}


@pytest.mark.parametrize("optimizer", ["NAdam(p)", "Adafactor(p)", "RMSprop(p, centered=True)", "AdamW(p, amsgrad=True)"])
def test_optimizers_divide_by_roots_of_what_is_positive(tmp_path, optimizer):
    setup = f"""
        model = torch.nn.Linear(16, 16)
        p = list(model.parameters())
        optimizer = torch.optim.{optimizer}
        def step():
            optimizer.zero_grad()
            model(torch.randn(8, 16)).square().mean().backward()
            optimizer.step()
        step()"""
    report = replay(record(tmp_path, "step()", setup), iterations=20)
    assert report["operators"]["replayed"] > 10
    assert report["values"]["non_finite_tensors"] == 0


def test_ranks_in_one_trace_are_not_one_step(tmp_path):
    both = tmp_path / "both.json"
    for rank in range(2):
        shutil.copy(OWN_DATA / "cpu/mlp_et.json.gz", tmp_path / f"host.{rank}.json.gz")
    subprocess.run([ETUDE, "merge", tmp_path, "--clocks", "keep", "-o", both], check=True, capture_output=True)
    for command in (["replay", both], ["benchmark", both, "-o", tmp_path / "bench"]):
        done = subprocess.run([ETUDE, *command], text=True, capture_output=True)
        assert done.returncode == 3 and "found operators of 2 processes" in done.stderr, done.stderr
    assert not (tmp_path / "bench").exists()


def test_compare_takes_no_replay_of_another_recording(tmp_path):
    jobs = []
    for name in ("a", "b"):
        jobs.append(tmp_path / name)
        program = tmp_path / f"{name}.py"
        program.write_text(
            "import torch\nmodel = torch.nn.Linear(8, 8)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
            "for _ in range(30):\n    model(torch.ones(4, 8)).sum().backward()\n    optimizer.step()\n"
        )
        for command in (["record", "-q", "-o", jobs[-1], "--", sys.executable, program], ["replay", "-q", jobs[-1]]):
            subprocess.run([ETUDE, *command], check=True, capture_output=True)
        subprocess.run([ETUDE, "compare", jobs[-1]], check=True, capture_output=True)
    shutil.copy(jobs[0] / "replay.0.json", jobs[1] / "replay.0.json")
    done = subprocess.run([ETUDE, "compare", jobs[1]], text=True, capture_output=True)
    assert done.returncode == 3 and "the replay of another recording" in done.stderr


def test_same_seed_same_setup(tmp_path):
    path = record(tmp_path, FLOW)
    one, two = (replay(path, "--seed", "7") for _ in range(2))
    for report in (one, two):
        for size in ("resident_before_steps_bytes", "growth_bytes"):
            del report["memory"][size]  # of the whole process, from the system
    for key in ("coverage", "skipped", "coerced", "memory", "same_kernels", "kernels"):
        assert one[key] == two[key]


def test_a_gan_replays_completely(tmp_path):
    setup = """
        from torch import nn
        G, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        of_g, of_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        def step():
            fake = G(torch.randn(2, 4))
            of_d.zero_grad(set_to_none=True)
            (D(torch.randn(2, 8)).sum() - D(fake.detach()).sum()).backward()
            of_d.step()
            of_g.zero_grad(set_to_none=True)
            D(fake).sum().backward()
            of_g.step()
        step()
    """
    report = replay(record(tmp_path, "step()", setup))
    assert report["coverage"]["ops"] == 1.0, report["skipped"]


def test_storages_come_from_outside(tmp_path):
    setup = "data = torch.rand(6).untyped_storage()"
    body = """
        x = torch.empty(0).set_(data, 2, (2, 2), (2, 1))
        y = x + x
    """
    report = replay(record(tmp_path, body, setup))
    assert report["coverage"]["ops"] == 1.0, report["skipped"]
    # The extent of the view: six floats.
    assert report["memory"]["outside_bytes"] == 24


def edit(path, change):
    trace = json.loads(path.read_text())
    change(trace["nodes"])
    path.write_text(json.dumps(trace))
    return path


def test_triton_kernels_are_skipped_and_said(tmp_path):
    def to_triton(nodes):
        node = next(node for node in nodes if node["name"] == "aten::mul")
        node["name"] = "triton_poi_fused_mul_0"
        for attribute in node["attrs"]:
            if attribute["name"] in ("op_schema", "kernel_backend"):
                attribute["value"] = {"op_schema": "", "kernel_backend": "triton"}[attribute["name"]]

    path = edit(record(tmp_path, FLOW), to_triton)
    report = replay(path, codes=(1,))
    assert [row["op"] for row in report["skipped"]] == ["triton_poi_fused_mul_0"]
    assert "Triton" in report["skipped"][0]["reason"]
    assert report["operators"]["total"] == report["operators"]["replayed"] + 1


def test_compiled_code_is_skipped_and_said(tmp_path):
    body = """
        x = torch.ones(4)
        with torch.profiler.record_function("## Call CompiledFxGraph f3c ##"):
            y = x + x
        with torch.profiler.record_function("Optimizer.step#SGD.step"):
            pass
    """
    report = replay(record(tmp_path, body), codes=(1,))
    assert [(row["op"], row["count"]) for row in report["skipped"]] == [("CompiledFxGraph", 1)]
    assert report["operators"]["total"] == report["operators"]["replayed"] + 1
    # With --only, only these operators count.
    assert replay(tmp_path / "host.json", "--only", "aten::add")["coverage"]["ops"] == 1.0


@pytest.mark.parametrize(
    "options, hint",
    [
        (["--only", "aten::mull"], "aten::mul.Tensor"),
        (["--only", "mul"], "aten::mul.Tensor"),
        (["--skip", "aten::fill_"], "only inside other operators of the step, such as aten::ones"),
        (["--only", "aten::mu"], "expected one such as aten::mul.Tensor"),
        (["--only", "aten::ee"], "expected one such as aten::"),
        (["--label", "nosuch"], "nosuch"),
    ],
)
def test_names_that_are_not_in_the_step_are_mistakes(tmp_path, options, hint):
    path = record(tmp_path, FLOW)
    done = subprocess.run([ETUDE, "replay", path, *options], text=True, capture_output=True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert hint in done.stderr and "[pytorch|profiler" not in done.stderr


def capture(tmp_path, program, *options):
    script = tmp_path / "program.py"
    script.write_text(forked_python.LIGHT + textwrap.dedent(program))
    folder = tmp_path / "job"
    command = [ETUDE, "record", "-o", folder, "--warmup", "2", "--steps", "3", *options, "--"]
    subprocess.run([*command, sys.executable, script], check=True, capture_output=True)
    return folder


def test_parts_of_a_step_are_not_kept_in_a_capture(tmp_path):
    folder = capture(
        tmp_path,
        """
        import torch
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        """,
    )
    # If a result cannot be kept, it is still shown.
    (folder / "replay.0.json/in the way").mkdir(parents=True)
    done = subprocess.run([ETUDE, "replay", folder, "--iterations", "1"], text=True, capture_output=True)
    assert done.returncode == 0 and "rank 0 on cpu" in done.stdout
    assert "the result is lost" in done.stderr and "replay.0.json" in done.stderr
    shutil.rmtree(folder / "replay.0.json")
    part = replay(folder, "--only", "aten::linear")
    assert part["part"] == {"label": "", "only": ["aten::linear"], "skip": []}
    assert part["error"] == {"wall": None, "cpu": None}
    assert not (folder / "replay.0.json").exists()
    whole = replay(folder)
    assert whole["part"] is None
    assert 0 < whole["recorded"]["operator_share"] < 1
    assert (folder / "replay.0.json").exists()
    compared = subprocess.run([ETUDE, "compare", folder], text=True, capture_output=True)
    assert "of the recorded step" in compared.stdout
    (folder / "replay.0.json").write_text(json.dumps(part))
    compared = subprocess.run([ETUDE, "compare", folder], text=True, capture_output=True)
    assert compared.returncode == 3
    assert "part of the step" in compared.stderr


def test_what_ran_at_the_same_time_is_said(tmp_path):
    folder = capture(
        tmp_path,
        """
        import threading
        import torch
        layer = torch.nn.Linear(256, 256)
        optimizer = torch.optim.SGD(layer.parameters(), 0.01)
        x = torch.ones(256, 256)
        def beside(barrier):
            barrier.wait()
            for _ in range(300):
                torch.mm(x, x)
        for _ in range(20):
            barrier = threading.Barrier(2)
            thread = threading.Thread(target=beside, args=[barrier])
            thread.start()
            barrier.wait()
            for _ in range(100):
                layer(x)
            layer(x).sum().backward()
            thread.join()
            optimizer.step()
            optimizer.zero_grad()
        """,
        "--recorder", "native",
    )  # fmt: skip
    recorded = replay(folder)["recorded"]
    assert 0 < recorded["thread_overlap_ms"] < recorded["step_ms"]
    assert recorded["stream_overlap_ms"] is None
    done = subprocess.run([ETUDE, "replay", folder, "--iterations", "1"], text=True, capture_output=True)
    assert "operators of several threads for" in done.stdout


def test_page_faults_are_those_that_were_recorded(tmp_path):
    # Blocks above the size that glibc maps, so that each step gets new pages for some of them.
    folder = capture(
        tmp_path,
        """
        import torch
        x = torch.nn.Parameter(torch.ones(3000000))
        optimizer = torch.optim.SGD([x], lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            (x * 2).relu().sum().backward()
            optimizer.step()
        """,
    )
    steps = json.loads((folder / "job.json").read_text())["ranks"]["0"]["timed_steps"]
    faults = sorted(step["minor_faults"] for step in steps)
    report = replay(folder, warmup=8, iterations=21)
    assert report["memory"]["recorded_minor_faults"] == faults[len(faults) // 2]
    wanted = report["memory"]["recorded_minor_faults"]
    assert abs(report["replay"]["minor_faults"] - wanted) <= max(128, 0.15 * wanted)
    # Unknown for a part of the step.
    assert replay(folder, "--only", "aten::mul")["memory"]["recorded_minor_faults"] is None


def test_gaps_pass_and_both_figures_are_said(tmp_path):
    for kind, name in (("et", "host"), ("kineto", "device")):
        shutil.copy(OWN_DATA / f"cpu/mlp_{kind}.json.gz", tmp_path / f"{name}.0.json.gz")
    quick = replay(tmp_path)
    gaps = quick["gaps"]
    lacking = quick["recorded"]["step_ms"] * (1 - quick["recorded"]["operator_share"])
    assert gaps["mode"] == "none" and gaps["scale"] == 1
    # Code between the parts of an operator that is replaced by them is a gap as well.
    assert lacking - 0.001 <= gaps["ms"] < 1.5 * lacking
    assert quick["replay"]["step_ms"] == gaps["without"]["step_ms"]
    # The operators alone have this much time between them.
    assert gaps["with"]["step_ms"]["wall"]["min"] > gaps["ms"]

    slow = replay(tmp_path, "--gaps", "recorded")
    assert slow["gaps"]["mode"] == "recorded" and slow["gaps"]["ms"] == gaps["ms"]
    assert slow["replay"]["step_ms"] == slow["gaps"]["with"]["step_ms"]
    assert slow["gaps"]["without"]["step_ms"]["wall"]["count"] == 1


def test_waits_of_the_program_take_no_processor(tmp_path):
    folder = capture(
        tmp_path,
        """
        import time, torch
        x = torch.nn.Parameter(torch.ones(3000))
        optimizer = torch.optim.SGD([x], lr=0.1)
        for _ in range(20):
            time.sleep(0.02)  # for its data
            optimizer.zero_grad()
            (x * 2).sum().backward()
            optimizer.step()
        """,
    )
    steps = json.loads((folder / "job.json").read_text())["ranks"]["0"]["timed_steps"]
    assert all(step["voluntary_switches"] > 0 for step in steps)
    gaps = replay(folder)["gaps"]
    assert 10 < gaps["idle_ms"] <= gaps["ms"]
    times = gaps["with"]["step_ms"]
    assert times["wall"]["min"] - times["cpu"]["min"] > gaps["idle_ms"] / 2


def test_time_that_other_work_took_is_no_gap(tmp_path):
    """A machine on which each step takes 100 ms longer, in which others use the processor."""
    folder = capture(
        tmp_path,
        """
        import torch
        x = torch.nn.Parameter(torch.ones(3000))
        optimizer = torch.optim.SGD([x], lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            (x * 2).sum().backward()
            optimizer.step()
        """,
    )
    job = json.loads((folder / "job.json").read_text())
    steps = job["ranks"]["0"]["timed_steps"]
    assert all(step["stolen_ns"] >= 0 for step in steps)
    for step in steps:
        step["wall_ns"], step["cpu_ns"], step["stolen_ns"] = 10**6, 10**6, 0
        step["voluntary_switches"] = 0
    (folder / "job.json").write_text(json.dumps(job))
    quiet = replay(folder)
    assert not any("busy" in note for note in quiet["notes"])
    for step in steps:
        step["wall_ns"] += 10**8
        step["stolen_ns"] = 10**8
    (folder / "job.json").write_text(json.dumps(job))
    busy = replay(folder)
    assert busy["gaps"]["ms"] == quiet["gaps"]["ms"] and busy["gaps"]["scale"] == quiet["gaps"]["scale"]
    assert busy["gaps"]["idle_ms"] == 0
    assert any("other processes used the processor for 99 %" in note for note in busy["notes"])
    # A program that also waits: time that is neither work nor stolen.
    for step in steps:
        step["wall_ns"] += 3 * 10**6
        step["voluntary_switches"] = 4
    (folder / "job.json").write_text(json.dumps(job))
    assert replay(folder)["gaps"]["scale"] > busy["gaps"]["scale"] or busy["gaps"]["scale"] == 1


def test_without_a_folder_for_temporary_files_kernels_are_unknown(tmp_path, monkeypatch):
    path = record(tmp_path, "x = torch.ones(4, 3)\nx @ x.t()")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    report = replay(path, "--per-op")
    assert report["coverage"]["ops"] == 1.0 and report["replay"]["step_ms"]["wall"]["count"] == 2
    assert report["same_kernels"] is None and report["kernels"] is None
    assert report["operator_time_difference"]["all"] is None and report["per_operator"] is None
    done = subprocess.run([ETUDE, "replay", path, "--iterations", "2"], text=True, capture_output=True)
    assert done.returncode == 0 and "same kernels: unknown" in done.stdout
    assert "the replay was not recorded" in done.stderr
    # If the recording itself was requested, it must be written.
    asked = ["--record", tmp_path / "absent/replay.etude"]
    failed = subprocess.run([ETUDE, "replay", path, *asked], text=True, capture_output=True)
    assert failed.returncode == 5 and failed.stdout == "", failed.stderr


def test_the_replay_is_recorded_and_compared(tmp_path):
    path = record(tmp_path, "x = torch.ones(4, 3)\nfor _ in range(3): y = x @ x.t()\ntorch.relu(y)")
    kept = tmp_path / "replay.etude"
    report = replay(path, "--record", kept, "--skip", "aten::relu", "--per-op", codes=(1,))
    # Three of t (whose leaf is as_strided) and mm each, and one relu, whose leaf is clamp.
    assert report["kernels"]["extra"] == []
    (missing,) = report["kernels"]["missing"]
    assert missing["count"] == 1 and missing["inputs"].startswith("float32[4,4]")
    assert report["same_kernels"] == pytest.approx(1 - 1 / report["kernels"]["recorded"])
    assert report["kernels"]["same_by_time"] is None  # the observer has no times
    assert report["operator_time_difference"]["all"] is None
    rows = {(row["op"], row["phase"]): row["count"] for row in report["per_operator"]}
    assert rows[("aten::matmul", "forward")] == 3
    info = subprocess.run([ETUDE, "stats", "--json", kept], text=True, capture_output=True, check=True)
    operators = {row["name"]: row["count"] for row in json.loads(info.stdout)["ops"]}
    assert operators["aten::matmul"] == 3 * 3


def test_work_is_counted_by_shapes(tmp_path):
    path = record(tmp_path, "x @ y", "x, y = torch.ones(4, 3), torch.ones(3, 5)")
    work = replay(path)["work"]
    assert work["flop"] == 2 * 4 * 3 * 5 and work["bytes"] == 4 * (12 + 15 + 20)
    assert work["replay"]["flop_per_s"] > 0 and work["original"] is None
    assert replay(path, "--only", "aten::matmul")["work"] is None


def test_kinds_of_steps_are_replayed_by_their_weights(tmp_path):
    body = """
        for i in range(5):
            with torch.profiler.record_function(f"ProfilerStep#{i}"):
                torch.relu(torch.ones(3 if i % 2 else 5))
    """
    path = record(tmp_path, body)
    # With two threads: those of the first kind must not prevent the trial of the second.
    report = replay(path, "--threads", "2")
    kinds = report["step_kinds"]
    assert [(kind["step"], kind["steps"]) for kind in kinds] == [(0, 3), (1, 2)]
    assert report["operators"]["total"] == report["operators"]["replayed"] == 5 * 2
    for clock in ("wall", "cpu"):
        first, second = (kind["step_ms"][clock]["median"] for kind in kinds)
        mean = report["replay"]["step_ms"][clock]["median"]
        assert mean == pytest.approx((3 * first + 2 * second) / 5, abs=1e-5)
    assert replay(path, "--steps", "first")["operators"]["total"] == 2
    assert replay(path, "--only", "aten::relu")["step_kinds"] == []
    # One of them is paced.
    line = [ETUDE, "replay", path, "--paced", "--warmup", "1"]
    done = subprocess.run(line, text=True, input="\nkernels\n\n", capture_output=True, check=True)
    ready, step, kernels, last = map(json.loads, done.stdout.splitlines())
    assert [(kind["step"], kind["steps"], kind["replayed"]) for kind in ready["step_kinds"]] == [
        (0, 3, True),
        (1, 2, False),
    ]
    assert ready["operators"]["total"] == 2 and min(step["wall_ns"], last["wall_ns"]) > 0
    assert kernels == {"same_kernels": 1, "same_kernels_by_time": None}


def test_gaps_need_times(tmp_path):
    path = record(tmp_path, "torch.ones(2) + 1")
    done = subprocess.run(
        [ETUDE, "replay", path, "--gaps", "recorded"], text=True, capture_output=True
    )
    assert done.returncode == 3
    assert "the trace has no times" in done.stderr


def test_what_a_step_changes_counts_against_the_limit(tmp_path):
    path = record(tmp_path, "x.add_(y)", "x, y = torch.ones(1000), torch.ones(1000)")
    limited = [ETUDE, "replay", path, "--iterations", "1", "--limit"]
    # Two tensors, and a copy of the one that changes.
    assert subprocess.run([*limited, "replay_bytes=12000"], capture_output=True).returncode == 0
    done = subprocess.run([*limited, "replay_bytes=11999"], text=True, capture_output=True)
    assert done.returncode == 3
    assert "12000 bytes" in done.stderr


def test_the_damage_of_a_trace_is_in_the_report(tmp_path):
    path = record(tmp_path, FLOW)
    text = path.read_text()
    path.write_text(text[: text.rindex('"id"')])
    assert replay(path)["stats"]["truncated"] == 1


OPERATORS = pathlib.Path(os.environ["ETUDE_BIN"]).parent / "tests/operators/test_operators.so"


def test_operators_of_a_library_replay_with_it(tmp_path):
    setup = f"torch.ops.load_library({str(OPERATORS)!r})"
    body = "x = torch.ones(4, 3)\ny = torch.ops.test_operators.add_twice(x, x * 2)\ny + 1"
    path = record(tmp_path, body, setup)
    report = replay(path, "--library", OPERATORS, "--per-op")
    assert report["skipped"] == [] and report["libraries"] == [str(OPERATORS)]
    assert report["replaced_by_parts"] == [] and report["same_kernels"] == 1.0
    assert "test_operators::add_twice" in {row["op"] for row in report["per_operator"]}
    # Without it its callees run in its place, but not its own code, for which the trace has no time.
    without = replay(path, "--per-op", codes=(1,))
    assert [row["op"] for row in without["skipped"]] == ["test_operators::add_twice"]
    assert without["replaced_by_parts"] == [{"op": "test_operators::add_twice", "count": 1}]
    rows = {row["op"] for row in without["per_operator"]}
    assert "aten::add.Tensor" in rows


def test_operators_that_are_given_files_are_not_run(tmp_path):
    """A trace from someone else could name any file."""
    setup = f"torch.ops.load_library({str(OPERATORS)!r})\nwritten, mapped = {str(tmp_path / 'w')!r}, {str(tmp_path / 'm')!r}"
    body = """x = torch.ones(4)
y = torch.ops.test_operators.append(x, written)
z = torch.from_file(mapped, shared=True, size=4)
y + 1"""
    path = record(tmp_path, body, setup)
    for file in ("w", "m"):
        (tmp_path / file).unlink()
    report = replay(path, "--library", OPERATORS, codes=(1,))
    skipped = {row["op"]: row["reason"] for row in report["skipped"]}
    assert "touches files" in skipped["test_operators::append"]
    assert "touches files" in skipped["aten::from_file"]
    assert not (tmp_path / "w").exists() and not (tmp_path / "m").exists()


def test_a_library_that_cannot_be_loaded_is_an_error(tmp_path):
    path = record(tmp_path, "torch.ones(4) + 1")
    broken = tmp_path / "broken.so"
    broken.write_text("no library" * 1000)
    for library, words in ((tmp_path / "absent.so", "cannot open"), (broken, "invalid ELF")):
        done = subprocess.run(
            [ETUDE, "replay", path, "--library", library], text=True, capture_output=True
        )
        assert done.returncode == 3 and done.stdout == ""
        assert str(library) in done.stderr and words in done.stderr
    # A name without a folder is a file here, not a library of the system.
    done = subprocess.run([ETUDE, "replay", path, "--library", "libm.so.6"], capture_output=True)
    assert done.returncode == 3


def test_memory_that_no_operator_wrote_holds_what_its_readers_need(tmp_path):
    setup = """
        table = torch.randn(50, 8)
        indices = torch.randint(0, 50, (40,))
    """
    body = """
        lengths = torch.tensor([0, 3, 0, 30, 2])                   # written past the dispatcher
        y = torch.embedding_bag(table, indices, lengths.cumsum(0))
        z = torch.embedding_bag(table, torch.tensor([7] * 20), torch.tensor([0, 9]).clone())
    """
    report = replay(record(tmp_path, body, setup))
    assert report["skipped"] == []
    # Content for 5, 20 and 2 numbers of 8 bytes in addition to the table and the indices.
    assert report["memory"]["outside_bytes"] == 4 * 50 * 8 + 8 * 40 + 8 * (5 + 20 + 2)


def test_memory_that_operators_wrote_needs_no_content(tmp_path):
    body = """
        a = torch.empty(100)
        b = torch.zeros_like(a)   # reads its form only
        a.fill_(1)
        c = torch.empty(100)
        torch.add(a, a, out=c)
        d = a + c
    """
    assert replay(record(tmp_path, body))["memory"]["outside_bytes"] == 0


@pytest.mark.parametrize("product", ["torch.matmul(a, a)", "torch.mm(a, a)", "torch.addmm(b, a, a)"])
def test_arguments_have_the_recorded_element_type(tmp_path, product):
    setup = """
        a = torch.randn(4, 4)
        b = torch.randn(4)
        c = torch.randn(4, 4).bfloat16()
    """
    # Without autocast the product is one of float32, which mm refuses together with bfloat16. Operators that consist of
    # others, or called themselves with arguments of another type, are replayed as their callees.
    body = f"""
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = {product}
        z = torch.mm(y, c)
    """
    report = replay(record(tmp_path, textwrap.dedent(body), setup))
    assert report["skipped"] == []
    assert report["coerced"]["shapes"] == 0


# An optimizer by hand.
UPDATE = """
    def update(*parameters):
        with torch.no_grad():
            for parameter in parameters:
                parameter.add_(parameter.grad, alpha=-0.1)
                parameter.grad = None
"""


# The step of a training program. The mask is made without a gradient to come, and the data has none.
TRAIN = UPDATE + """
    data, weight, bias = torch.randn(4, 8), torch.randn(8, 8, requires_grad=True), torch.randn(8, requires_grad=True)
    target, mask = torch.randn(4, 8), torch.rand(4, 8)
    def step():
        y = torch.nn.functional.linear(data, weight, bias).relu_()
        y = torch.nn.functional.linear(y * (mask > 0.5), weight, bias)
        torch.nn.functional.mse_loss(y.t(), target.t()).backward()
        update(weight, bias)
    step()
"""


def numbered_nodes(path, folder):
    """Returns the nodes of the first step with an autograd sequence number: name and number, in order."""
    subprocess.run([ETUDE, "convert", "-q", path, "--to", "pytorch", "-o", folder], check=True)
    nodes = sorted(json.loads((folder / "host.0.json").read_text())["nodes"], key=lambda node: node["id"])
    marks = [node["id"] for node in nodes if node["name"].startswith("ProfilerStep#")] + [sys.maxsize] * 2
    first, end = marks[:2] if marks[0] != sys.maxsize else (0, sys.maxsize)
    numbers = [(node, next(a["value"] for a in node["attrs"] if a["name"] == "seq_id")) for node in nodes]
    return [(node["name"], number) for node, number in numbers if first <= node["id"] < end and number >= 0]


def nodes_made(path, folder):
    """Returns for the first step's forward operators how many autograd nodes had been made before each."""
    names = ("aten::linear", "aten::addmm", "aten::relu_", "aten::mse_loss")
    found = [(name, number) for name, number in numbered_nodes(path, folder) if name in names]
    return [(name, number - found[0][1]) for name, number in found]


def test_operators_make_what_a_backward_pass_needs(tmp_path):
    path = record(tmp_path, "step()", TRAIN)
    report = replay(path, "--record", tmp_path / "replay.etude")
    assert report["same_kernels"] == 1.0 and report["skipped"] == []
    made = nodes_made(path, tmp_path / "original")
    assert [name for name, _ in made] == ["aten::linear", "aten::addmm", "aten::relu_"] + ["aten::linear", "aten::addmm", "aten::mse_loss"]
    assert [number for _, number in made] == [0, 1, 2, 4, 5, 7]
    assert nodes_made(tmp_path / "replay.etude", tmp_path / "replayed") == made


def test_an_argument_that_can_have_no_gradient_is_left_without(tmp_path):
    # Without an optimizer nothing shows that the weights of the classes are not a parameter.
    setup = """
        data, weight = torch.randn(4, 8), torch.randn(3, 8, requires_grad=True)
        classes, target = torch.rand(3), torch.tensor([0, 2, 1, 1])
    """
    body = "torch.nn.functional.nll_loss((data @ weight.t()).log_softmax(1), target, classes).backward()"
    report = replay(record(tmp_path, body, setup))
    assert report["skipped"] == [] and report["same_kernels"] == 1.0


def seen_gradients(path, folder, names):
    """Returns how many autograd nodes the operators of these names made, by name, in the first replayed step."""
    report = replay(path, "--record", folder.with_suffix(".etude"))
    assert report["skipped"] == []
    found, before = dict.fromkeys(names, 0), None
    for name, number in numbered_nodes(folder.with_suffix(".etude"), folder):
        if before is not None and before[0] in found:
            found[before[0]] += number - before[1]
        before = name, number
    return found


def test_what_autograd_copies_is_there_for_its_reader(tmp_path):
    setup = UPDATE + """
    data, weights = torch.randn(256, 256), [torch.randn(256, 256, requires_grad=True) for _ in range(5)]
    def step():
        y = data * weights[0]
        for weight in weights[1:]:
            y.mul_(weight)
        y.mean().backward()
        update(*weights)
    step()
    """
    report = replay(record(tmp_path, "step()", setup))
    assert report["skipped"] == [] and report["same_kernels"] == 1.0
    assert report["memory"]["outside_bytes"] < 8 * 256 * 256 * 4  # six of the program's, not four copies in addition


def test_what_a_function_of_pythons_returns_has_a_gradient_to_come(tmp_path):
    setup = UPDATE + """
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(context, data, weight):
            context.save_for_backward(data, weight)
            return torch.mm(data, weight)
        @staticmethod
        def backward(context, gradient):
            data, weight = context.saved_tensors
            return torch.mm(gradient, weight.t()), torch.mm(data.t(), gradient)
    data, weight = torch.randn(4, 8), torch.randn(8, 8, requires_grad=True)
    def step():
        halved = data.mul(0.5)  # no gradient, right before the function
        Scale.apply(halved, weight).exp().add(1).sum().backward()
        update(weight)
    step()
    """
    made = seen_gradients(record(tmp_path, "step()", setup), tmp_path / "replay", ["aten::mul", "aten::exp", "aten::add"])
    assert made == {"aten::mul": 0, "aten::exp": 1, "aten::add": 1}


def test_what_is_written_to_through_a_view_has_a_gradient_to_come(tmp_path):
    setup = UPDATE + """
    data, weight = torch.randn(4, 8), torch.randn(4, 4, requires_grad=True)
    def step():
        padded = torch.zeros(4, 8)
        padded[:, 2:6] = weight
        padded.exp().sum().backward()
        update(weight)
    step()
    """
    assert seen_gradients(record(tmp_path, "step()", setup), tmp_path / "replay", ["aten::exp"]) == {"aten::exp": 1}


def test_a_gradient_that_is_written_through_a_view_does_not_stay(tmp_path):
    # Uses memory that is kept from step to step: nodes would accumulate, and operators that read it made others.
    setup = UPDATE + """
    weight, memory, other = torch.randn(4, 4, requires_grad=True), torch.zeros(4, 8), torch.randn(4, 8)
    def step():
        global memory
        view = memory[:, 2:6]
        view.copy_(weight)
        with torch.no_grad():
            memory * other
        view.exp().sum().backward()
        memory = memory.detach()
        update(weight)
    step()
    """
    made = seen_gradients(record(tmp_path, "step()", setup), tmp_path / "replay", ["aten::mul"])
    assert made == {"aten::mul": 0}


def test_a_parameter_first_seen_through_a_view_has_a_gradient_to_come(tmp_path):
    # A step that begins with the backward pass of the forward pass before it.
    setup = """
    data, weight = torch.randn(4, 8), torch.randn(8, 8, requires_grad=True)
    loss = [torch.nn.functional.linear(data.exp(), weight).exp().sum()]
    def step():
        loss.pop().backward()
        weight.grad = None
        inner = torch.nn.functional.linear(data, weight)
        loss.append(torch.nn.functional.linear(inner, weight).exp().sum())
    step()
    """
    made = seen_gradients(record(tmp_path, "step()", setup), tmp_path / "replay", ["aten::t", "aten::addmm", "aten::mm"])
    assert made["aten::t"] == 2


def test_operators_under_hooks_for_saved_tensors_have_a_gradient_to_come(tmp_path):
    # The callees of such hooks are missing in the replay. A gradient to come is not the cause.
    setup = UPDATE + """
    from torch.utils.checkpoint import checkpoint
    data, weight, bias = torch.randn(4, 8), torch.randn(8, 8, requires_grad=True), torch.randn(8, requires_grad=True)
    def layer(x):
        return torch.relu(torch.nn.functional.linear(x, weight, bias))
    def step():
        checkpoint(layer, checkpoint(layer, data, use_reentrant=False), use_reentrant=False).sum().backward()
        update(weight, bias)
    step()
    """
    made = seen_gradients(record(tmp_path, "step()", setup), tmp_path / "replay", ["aten::t", "aten::addmm", "aten::relu"])
    # Two layers twice. Recomputed operators end within the last operator, which is missing in the trace.
    assert made == {"aten::t": 4, "aten::addmm": 4, "aten::relu": 2}


# Values that a step computes with, and the statement whose result's size depends on them.
SIZES = {
    "index": ("m = h[:, 0] > 0.3", "h[m].sum()"),
    "index_two": ("m = (h > 0.3) & (h < 0.9)", "h[m].sum()"),
    "index_put": ("m = h[:, 0] > 0.3", "y = torch.zeros(60, 8); y[m] = h[m] * 2"),
    "put_scalar": ("m = h[:, 0] > 0.3", "h[m] = 0.5"),
    "masked_select": ("m = h > 0.3", "h.masked_select(m).sum()"),
    "masked_scatter": ("m = (h[:, 0] > 0.3).unsqueeze(-1).expand_as(h)", "torch.zeros(60, 8).masked_scatter(m, h[h[:, 0] > 0.3])"),
    "nonzero": ("m = h[:, 0] > 0.3", "h[m.nonzero().squeeze(1)].sum()"),
    "where": ("m = h[:, 0] > 0.3", "h.index_select(0, torch.where(m)[0]).sum()"),
    "argwhere": ("m = h > 0.5", "i = torch.argwhere(m); h[i[:, 0], i[:, 1]].sum()"),
    "unique": ("ids = (h[:, 0].abs() * 9).long()", "u, inverse = ids.unique(return_inverse=True); h[:1].expand(len(u), 8)[inverse].sum()"),
    "bincount": ("ids = (h[:, 0].abs() * 9).long()", "torch.bincount(ids).float().sum()"),
    "one_hot": ("ids = (h[:, 0].abs() * 9).long()", "torch.nn.functional.one_hot(ids).float().sum()"),
    "repeat_interleave": ("r = (h[:, 0].abs() * 3).long() + 1", "h.repeat_interleave(r, 0).sum()"),
    "pack": (
        "n = (h[:6, 0].abs() * 5).long().clamp(1, 9).sort(descending=True)[0]",
        "p = torch._pack_padded_sequence(torch.randn(6, int(n[0]), 4), n, True); torch._pad_packed_sequence(*p, True, 0.0, int(n[0]))",
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_values_make_results_of_the_recorded_size(tmp_path, name):
    """A mask, lengths or numbers are computed from random numbers, but the operator gets suitable ones."""
    computed, used = SIZES[name]
    path = record(tmp_path, f"h = torch.nn.functional.linear(x, w)\n{computed}\n{used}", "x = torch.randn(60, 4)\nw = torch.randn(8, 4)")
    for seed in ("0", "1"):
        report = replay(path, "--seed", seed)
        assert report["coverage"]["ops"] == 1 and report["coerced"]["shapes"] == 0, report["skipped"]
        # Slices of packed sequences have the sizes of batches, of which only the sum is known.
        assert report["same_kernels"] >= (0.8 if name == "pack" else 1), report["kernels"]


def test_a_benchmark_is_given_the_same_values(tmp_path):
    path = record(tmp_path, "h = torch.nn.functional.linear(x, w)\ny = h[h[:, 0] > 0.3]", "x = torch.randn(60, 4)\nw = torch.randn(8, 4)")
    subprocess.run([ETUDE, "benchmark", "-q", path, "-o", tmp_path / "bench", "--iterations", "1"], check=True)
    text = (tmp_path / "bench/step.py").read_text()
    assert text.index("copy_bytes(") < text.index("aten.index.Tensor") and "fit(t[" not in text
    subprocess.run([sys.executable, tmp_path / "bench/benchmark.py", "--iterations", "1"], check=True)


def test_computed_indices_that_are_out_of_bounds_are_replaced(tmp_path):
    """No rule covers this arithmetic, so the trial fails, and the operator gets indices."""
    body = "i = (x * 0.001).round().long().square() + 3\ny = table[i]\nz = torch.nn.functional.cross_entropy(logits, (x * 4).long().remainder(7))"
    path = record(tmp_path, body, "x = torch.rand(9)\ntable = torch.randn(4, 2)\nlogits = torch.randn(9, 7)")
    report = replay(path)
    assert report["coverage"]["ops"] == 1, report["skipped"]


@pytest.mark.parametrize(
    "statement",
    [
        "a ** 0.5", "(1 - a) ** 0.5", "a.pow(-1.5)", "a.pow_(0.3)", "torch._foreach_pow([a, b], 0.5)", "a.lgamma()", "a.log1p()",
        "a.asin()", "torch.bernoulli(a)", "torch.nn.functional.binary_cross_entropy(a, b)", "a.logit()", "torch.pow(a, b)",
    ],
)
def test_values_are_where_operators_are_defined(tmp_path, statement):
    """For example, the alphas of a diffusion model's schedule, of which some are picked first."""
    path = record(tmp_path, f"a, b = a[i], b[i]\ny = {statement}", "a = torch.rand(50)\nb = torch.rand(50)\ni = torch.arange(20)")
    report = replay(path)
    assert report["coverage"]["ops"] == 1 and report["values"]["non_finite_tensors"] == 0
