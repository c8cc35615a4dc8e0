"""Replays of all ranks of a job: collectives really run between local processes."""

import contextlib
import functools
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked_python import LIGHT
from two_ranks import ETUDE, record, replay, run

JOB = LIGHT + """
import torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
rank = dist.get_rank()
layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
model = nn.parallel.DistributedDataParallel(layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(5, 8)


def collectives():
    ones, two = torch.ones(4), [torch.empty(4), torch.empty(4)]
    dist.broadcast(ones, 0)
    dist.all_reduce(ones)
    dist.reduce(ones, 1)
    dist.all_gather(two, ones)
    dist._all_gather_base(torch.empty(8), ones)
    dist._reduce_scatter_base(torch.empty(4), torch.ones(8))
    dist.all_to_all_single(torch.empty(4), ones)
    dist.gather(ones, two if rank == 0 else None, 0)
    dist.scatter(ones, two if rank == 0 else None, 0)
    dist.barrier()
    if rank == 0:
        dist.send(ones, 1)
        dist.recv(ones)
    else:
        dist.recv(ones, 0)
        dist.send(ones, 0)
    work = dist.all_reduce(ones, async_op=True)
    other = torch.zeros(3) + 1
    work.wait()
    return ones + 1


for _ in range(8):
    optimizer.zero_grad()
    collectives()
    # On rank 0 all gradients are infinite, on rank 1 all are 0 but for what comes from rank 0.
    model(x).sum().backward(torch.full((), float("inf") if rank == 0 else 0.0))
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return record(tmp_path_factory.mktemp("ranks"), JOB)


@pytest.fixture
def copy(job, tmp_path):
    return shutil.copytree(job, tmp_path / "job")


def edit_host(folder, rank, change):
    path = folder / f"host.{rank}.json.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))


def test_all_ranks_replay_completely(job):
    report = replay(job, "--ranks", "all")
    assert report["rank"] == 0 and report["skipped"] == []
    assert report["coverage"] == {"ops": 1.0, "time": 1.0, "device_time": None}
    assert [row["rank"] for row in report["ranks"]] == [0, 1]
    for row in report["ranks"]:
        assert row["coverage"]["ops"] == 1.0
        assert row["step_ms"]["wall"]["median"] > 0
    for rank in (0, 1):  # each has a report
        own = json.loads((job / f"replay.{rank}.json").read_text())
        assert own["rank"] == rank and own["ranks"] == report["ranks"]
    compared = subprocess.run([ETUDE, "compare", job], text=True, capture_output=True)
    assert compared.returncode == 0, compared.stderr
    assert "rank 0 " in compared.stdout and "rank 1 " in compared.stdout


def test_communication_or_all_else_alone(job):
    whole = replay(job, "--ranks", "all")["operators"]["total"]
    communication = replay(job, "--ranks", "all", "--only", "comm")
    computation = replay(job, "--ranks", "all", "--only", "compute")
    assert communication["skipped"] == computation["skipped"] == []
    assert communication["operators"]["total"] >= 14
    assert communication["operators"]["total"] + computation["operators"]["total"] == whole
    # The same for a single rank, without any process group.
    assert replay(job, "--rank", "0", "--only", "compute")["operators"] == computation["operators"]
    left = replay(job, "--ranks", "all", "--skip", "comm", code=1)
    assert {row["reason"] for row in left["skipped"]} == {"skipped by --skip"}


def test_a_rank_reads_what_others_reduced(job):
    # Rank 1 becomes infinite only through the values that rank 0 adds to its gradients.
    together = replay(job, "--ranks", "2", "--rank", "1")
    assert together["rank"] == 1 and together["values"]["non_finite_tensors"] > 0
    alone = replay(job, "--rank", "1", code=1)
    assert alone["values"]["non_finite_tensors"] == 0 and alone["ranks"] == []
    assert all("--ranks" in row["reason"] for row in alone["skipped"])


def test_paced_ranks_step_together(job):
    done = run(job, "--ranks", "all", "--paced", text_in="\n\n\nkernels\n")
    assert done.returncode == 0
    # The missing part of the recording depends on where its steps were cut.
    assert all("as recorded: " in line for line in done.stderr.splitlines()), done.stderr
    ready, *steps, kernels = map(json.loads, done.stdout.splitlines())
    assert [row["coverage"]["ops"] for row in ready["ranks"]] == [1.0, 1.0]
    assert 0.5 < kernels["same_kernels"] <= 1
    assert len(steps) == 3 and all(step["wall_ns"] > 0 for step in steps)


def test_each_rank_is_a_session(job):
    # Like torchrun's ranks: a busy machine divides its processors among sessions.
    command = [ETUDE, "replay", job, "--ranks", "all", "--paced", "--warmup", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as paced:
        paced.stdout.readline()
        print(file=paced.stdin, flush=True)
        lead = json.loads(paced.stdout.readline())["pid"]
        assert os.getsid(lead) == lead != paced.pid


def test_a_rank_that_fails_ends_all(copy):
    (copy / "host.1.json.gz").write_bytes(gzip.compress(b'{"schema": "1.1.1-chakra.0.0.4"}'))
    done = run(copy, "--ranks", "all")
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("etude: rank 1: ")


def test_communications_that_do_not_fit_are_found_before_ranks_start(copy):
    edit_host(copy, 1, lambda text: text.replace("c10d::allreduce_", "c10d::unknown_"))
    done = run(copy, "--ranks", "all", "--timeout", "1")
    assert done.returncode == 3 and done.stdout == ""
    assert "do not match and would deadlock" in done.stderr and "rank 1" in done.stderr


def launched(folder, rank, *options, variables=None):
    """Starts a process like mpirun."""
    mpi = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    command = [ETUDE, "replay", folder, "--warmup", "1", "--json", "-q", *map(str, options)]
    return subprocess.Popen(
        command,
        env={**os.environ, **(mpi if variables is None else variables), "MASTER_PORT": str(free_port())},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@functools.cache
def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_ranks_that_mpirun_started(job):
    ranks = [launched(job, rank, "--iterations", 2) for rank in (0, 1)]
    outputs = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert [row["rank"] for row in json.loads(outputs[0][0])["ranks"]] == [0, 1]
    assert outputs[1] == ("", "")


def test_ranks_that_torchrun_started(job):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
    command += [ETUDE, "replay", job, "--warmup", "1", "--iterations", "2", "--json", "-q"]
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [row["rank"] for row in json.loads(done.stdout)["ranks"]] == [0, 1]


def test_a_launcher_with_another_number_of_processes_is_told(job):
    mpi = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}
    one = launched(job, 2, variables=mpi)
    errors = one.communicate(timeout=60)[1]
    assert one.returncode == 2
    assert "Open MPI started 3 processes, expected 2: one per rank of" in errors


def cpu_time(process):
    """Returns seconds of CPU time in user mode."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def replay_with_a_pause(job, seconds, rank=1, options=()):
    """Returns the output of a replay in which one rank stands still for this time; None: forever."""
    command = [ETUDE, "replay", job, "--ranks", "all", "--timeout", "1", "--iterations", "100000", "-q", *options]
    replay = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    children = Path(f"/proc/{replay.pid}/task/{replay.pid}/children")
    begun = None
    deadline = time.monotonic() + 300
    while replay.poll() is None:
        assert time.monotonic() < deadline
        ranks = children.read_text().split()
        # With the threads of their groups, and a second of CPU time in addition: the steps have begun.
        if len(ranks) == 2 and all(len(os.listdir(f"/proc/{rank}/task")) > 2 for rank in ranks):
            begun = begun or [cpu_time(rank) for rank in ranks]
            if all(cpu_time(rank) > before + 1 for rank, before in zip(ranks, begun)):
                break
        time.sleep(0.05)
    os.kill(int(ranks[rank]), signal.SIGSTOP)
    if seconds is not None:
        # The time-out may pass unnoticed if the others do not run in the meantime, so try once more.
        while replay.poll() is None:
            os.kill(int(ranks[rank]), signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(int(ranks[rank]), signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                replay.wait(30)
    errors = replay.communicate(timeout=120)[1]
    assert replay.returncode == 70
    return errors


def test_a_time_out_says_who_waits_for_whom(job):
    errors = replay_with_a_pause(job, None)
    assert "rank 1 does not answer" in errors
    assert any(re.search(r"rank 0 is (in c10d::.*|after step \d+); waits for rank 1$", line) for line in errors.splitlines()), errors


# The others meet through rank 0, so they waited forever for its answer.
def test_a_time_out_says_that_the_rank_has_stopped_through_which_all_meet(job):
    errors = replay_with_a_pause(job, None, rank=0)
    assert "rank 0 does not answer: it stopped or is unreachable" in errors, errors
    assert re.search(r"\n  rank 1 is .* step \d+", errors), errors


def test_a_time_out_says_what_all_ranks_are_at(job):
    # A rank that continues too late, as on a busy machine, does not answer.
    for _ in range(5):
        errors = replay_with_a_pause(job, 2)
        if "does not answer" not in errors:
            break
    assert re.search(r"\n  rank 0 is .* step \d+", errors) and re.search(r"\n  rank 1 is .* step \d+", errors), errors


def test_ranks_that_are_not_there(copy):
    for wrong in ("3", "0", "1,"):
        done = run(copy, f"--ranks={wrong}")
        assert done.returncode == 2 and done.stdout == "", wrong
    assert "a number from 1 to 2" in run(copy, "--ranks", "0").stderr
    job = json.loads((copy / "job.json").read_text())
    (copy / "job.json").write_text(json.dumps({**job, "world_size": 2**60}))
    done = run(copy, "--ranks", "all")
    assert done.returncode == 3 and "found a job of 1152921504606846976 ranks, expected at most 1048576" in done.stderr
    (copy / "job.json").write_text(json.dumps(job))
    (copy / "host.1.json.gz").unlink()
    (copy / "device.1.json.gz").unlink()
    done = run(copy, "--ranks", "all")
    assert done.returncode == 3 and "rank 1" in done.stderr
    assert run(copy / "host.0.json.gz", "--ranks", "all").returncode == 2


@pytest.mark.parametrize("too", ["deep", "shallow"])
def test_nesting_that_gloo_disturbed_is_set_right(copy, too):
    """PyTorch's observer nests operators wrongly if a collective ends while they run."""
    right = replay(copy, "--rank", "0", code=1)["operators"]

    def disturb(text):
        trace = json.loads(text)
        by_id = {node["id"]: node for node in trace["nodes"]}
        schema = lambda node: next(a["value"] for a in node["attrs"] if a["name"] == "op_schema")
        inside = lambda node: node["ctrl_deps"] in by_id and schema(by_id[node["ctrl_deps"]]) != ""
        operators = [by_id[i] for i in sorted(by_id) if schema(by_id[i]) != ""]
        if too == "deep":
            one, other = [node for node in operators if not inside(node)][-2:]
            other["ctrl_deps"] = one["id"]
        else:
            inner = next(node for node in operators if inside(node))
            inner["ctrl_deps"] = by_id[inner["ctrl_deps"]]["ctrl_deps"]
        return json.dumps(trace)

    edit_host(copy, 0, disturb)
    assert replay(copy, "--rank", "0", code=1)["operators"] == right


def test_a_rank_alone_with_emulated_peers(job):
    before = (job / "replay.0.json").read_text() if (job / "replay.0.json").exists() else None
    report = replay(job, "--rank", "0", "--peers", "fake")
    assert report["skipped"] == [] and report["coverage"]["ops"] == 1.0
    peers = report["peers"]
    assert (peers["ranks"], peers["present"], peers["fit"]) == (2, 1, None)
    calls = peers["communications"]
    assert calls >= 13  # of the program, and of DDP
    after = (job / "replay.0.json").read_text() if (job / "replay.0.json").exists() else None
    assert after == before

    # Each communication takes its latency, one after the other.
    slow = replay(job, "--rank", "0", "--peers", "20ms,1GB/s")
    assert slow["peers"]["latency_us"] == 20000 and slow["peers"]["communications"] == calls
    assert slow["replay"]["step_ms"]["wall"]["median"] >= calls * 20
    assert slow["replay"]["step_ms"]["cpu"]["median"] < calls * 20  # and waits

    fitted = replay(job, "--rank", "1", "--peers", "trace")["peers"]
    assert fitted["fit"]["communications"] >= 8 and fitted["fit"]["sizes"] > 3


def test_a_rank_without_its_peers_needs_a_model(job):
    done = run(job, "--ranks", "1")
    assert done.returncode == 2 and "--peers" in done.stderr
    done = run(job, "--rank", "0", "--peers", "fast")
    assert done.returncode == 2 and "found 'fast'" in done.stderr
    done = run(job, "--ranks", "0,2")
    assert done.returncode == 2 and "a list of ranks as 0,1" in done.stderr


def test_a_folder_that_does_not_say_how_many_ranks_there_were(copy, tmp_path):
    (copy / "job.json").unlink()
    assert replay(copy, "--ranks", "all")["coverage"]["ops"] == 1.0
    for rank_1 in copy.glob("*.1.*"):
        rank_1.unlink()
    done = run(copy, "--ranks", "all")
    assert done.returncode == 3 and "missing trace of rank 1" in done.stderr
    peers = replay(copy, "--ranks", "1", "--peers", "fake")["peers"]
    assert (peers["ranks"], peers["present"]) == (2, 1)


def test_two_ranks_that_used_gpus():
    folder = Path(__file__).resolve().parents[1] / "data/gpu/messages"
    report = replay(folder, "--ranks", "all", "--device", "cpu")
    assert report["coverage"] == {"ops": 1.0, "time": 1.0, "device_time": 1.0} and report["skipped"] == []
    assert (report["device"], [row["rank"] for row in report["ranks"]]) == ("cpu", [0, 1])


def test_four_ranks_of_eight_that_used_gpus():
    folder = Path(os.environ.get("ETUDE_SHARED_DATA", "")) / "gpu/dlrm8"
    if not folder.exists():
        pytest.skip(f"no {folder}")
    report = replay(folder, "--ranks", "4", "--peers", "fake", "--device", "cpu", code=1)
    assert (report["peers"]["ranks"], report["peers"]["present"]) == (8, 4)
    # FBGEMM's look-ups launch kernels in autograd functions that are not operators.
    look_ups = {f"torch::autograd::CppNode<SplitLookupFunction_{kind}_Op>" for kind in ("Dense", "adagrad")}
    assert {row["op"] for row in report["skipped"]} == {"aten::record_stream", *look_ups}
    assert 0.5 < report["coverage"]["device_time"] < 1
    assert [row["rank"] for row in report["ranks"]] == [0, 1, 2, 3]


def test_an_emulated_machine(job):
    kept = (job / "replay.0.json").read_bytes()
    plain = replay(job, "--rank", "0", "--peers", "fake")
    slower = replay(job, "--rank", "0", "--peers", "fake", "--scale", "compute=60")
    assert slower["scale"] == {"factors": "compute × 60", "slowdown": 1}
    assert slower["replay"]["step_ms"]["cpu"] is None  # means nothing
    # Other processes delay the plain one, but take none of its processor time.
    assert slower["replay"]["step_ms"]["wall"]["median"] > 5 * plain["replay"]["step_ms"]["cpu"]["median"]

    # Communication takes half as long, so that all other work runs twice as slowly.
    faster = replay(job, "--ranks", "all", "--scale", "comm=0.5", "--straggler", "1:3")
    assert faster["scale"] == {"factors": "comm × 0.5, rank 1 × 3", "slowdown": 2}
    assert faster["coverage"]["ops"] == 1.0 and len(faster["ranks"]) == 2
    assert (job / "replay.0.json").read_bytes() == kept
    assert run(job, "--ranks", "all", "--scale", "speed=2").returncode == 2


def test_an_emulation_of_nothing_is_told(job):
    report = replay(job, "--ranks", "all", "--scale", "aten::nomm=2")
    assert report["scale"]["factors"] == "aten::nomm × 2 (none in this step)"
    for wrong, why in [
        (["--rank", "0", "--straggler", "1:2"], "--straggler: rank 1 is not replayed, expected one of 0"),
        (["--ranks", "1", "--peers", "fake", "--straggler", "1:2"], "--straggler: rank 1 is not replayed, expected one of 0"),
        (["--rank", "0", "--peers", "fake", "--straggler", "1:2"], "--straggler: rank 1 is not replayed, expected one of 0"),
        (["--ranks", "all", "--straggler", "2:2"], "--straggler: the job has no rank 2, expected one below 2"),
        (["--ranks", "all", "--peers", "fast"], "--peers: found 'fast', expected fake, trace, or LATENCY,BANDWIDTH such as 20us,10GB/s"),
        (["--rank", "0", "--pin"], "--pin requires --ranks"),
    ]:
        done = run(job, *wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"etude: {why}\n"


def test_reports_of_different_commands_are_not_compared(copy):
    replay(copy, "--ranks", "all")
    replay(copy, "--rank", "0", code=1)
    done = subprocess.run([ETUDE, "compare", copy], text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert "rank 0 was replayed alone, but rank 1 together with ranks 0, 1" in done.stderr


@pytest.mark.parametrize("command", ["replay", "benchmark"])
def test_ranks_that_cannot_be_are_found_before_the_first_step(copy, tmp_path, command):
    def to_rank_5(text):
        trace = json.loads(text)
        for node in trace["nodes"]:
            if node["name"] == "c10d::send":
                node["inputs"]["values"][2] = 5
        return json.dumps(trace)

    edit_host(copy, 1, to_rank_5)
    more = ["--output", tmp_path / "made"] if command == "benchmark" else []
    done = subprocess.run([ETUDE, command, copy, "--ranks", "all", *more], text=True, capture_output=True, timeout=50)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.search(
        r"rank 1: node \d+, c10d::send: dst is rank 5 of process group '.*', expected one below 2", done.stderr
    ), done.stderr
    assert not (tmp_path / "made").exists()
