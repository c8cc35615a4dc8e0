"""The command `etude record`: folders, exit codes, signals, messages."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys

import pytest
from conftest import SETUP, Result, check_traces, program

ETUDE = pathlib.Path(os.environ.get("ETUDE_BIN", "")) / "etude"
pytestmark = pytest.mark.skipif(
    not os.environ.get("ETUDE_BIN"), reason="ETUDE_BIN does not say where etude is"
)

COUNTS = ["--warmup", "2", "--steps", "3"]
TRAINING = program("for _ in range(10): train()\nprint('trained')")


def etude(*arguments, cwd, **more):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH",)}
    environment["OMP_NUM_THREADS"] = "1"
    environment.update(more.pop("environment", {}))
    return subprocess.run(
        [str(ETUDE), *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        **more,
    )


def record(tmp_path, source, *options, python=(sys.executable,), arguments=(), **more):
    (tmp_path / "program.py").write_text(source)
    line = ["record", "--recorder", "observers", "-o", "job", *COUNTS, *options, "--", *python, "program.py", *arguments]
    return etude(*line, cwd=tmp_path, **more)


def captured(tmp_path):
    done = subprocess.CompletedProcess([], 0, "", "")
    return Result(done, tmp_path / "job")


def test_recording_and_its_report(tmp_path):
    done = record(tmp_path, TRAINING, "--summary", "summary.json")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "SGD; Sequential f32[5,8]" in done.stderr and "recorded" in done.stderr
    result = captured(tmp_path)
    check_traces(result)
    assert result.hidden() == []
    job = result.job()
    assert job["command"] == [sys.executable, "program.py"]
    assert job["versions"]["etude"] == "0.1.0" and job["job"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["captured"] and summary["exit_code"] == 0
    (signature,) = summary["ranks"][0]["signatures"]
    assert signature["median_cpu_ms"] > 0 and signature["timed"] == 3


def test_command_of_many_words(tmp_path):
    """Tests a command that is longer than one environment variable can be."""
    names = [f"data/{number:080}.jpg" for number in range(2000)]
    done = record(tmp_path, TRAINING + "\nprint(len(sys.argv))", arguments=names)
    assert (done.returncode, done.stdout) == (0, "trained\n2001\n"), done.stderr
    assert captured(tmp_path).job()["command"] == [sys.executable, "program.py", *names]
    assert captured(tmp_path).hidden() == []


def test_capture_is_replaced_only_by_force(tmp_path):
    assert record(tmp_path, TRAINING).returncode == 0
    refused = record(tmp_path, TRAINING)
    assert refused.returncode == 3 and "--force" in refused.stderr and refused.stdout == ""
    (tmp_path / "job" / "linked.0.json").write_text("{}")
    (tmp_path / "job" / "notes.txt").write_text("mine")
    assert record(tmp_path, TRAINING, "--force").returncode == 0
    assert captured(tmp_path).names() == [
        "device.0.json.gz",
        "host.0.json.gz",
        "job.json",
        "notes.txt",
    ]


def test_earlier_capture_stays_if_nothing_replaces_it(tmp_path):
    assert record(tmp_path, TRAINING).returncode == 0
    folder = tmp_path / "job"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    mistyped = etude("record", "--force", "-o", "job", "--", "no-such-program", cwd=tmp_path)
    assert mistyped.returncode == 4
    early = record(tmp_path, program("for _ in range(4): train()"), "--force", "-q")
    assert early.returncode == 1
    assert "4 steps" in early.stderr and "the earlier capture is unchanged" in early.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_folder_with_other_things_is_refused(tmp_path, force):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "thesis.tex").write_text("mine")
    done = record(tmp_path, TRAINING, *force)
    assert done.returncode == 3 and "expected an empty or new folder" in done.stderr
    assert captured(tmp_path).names() == ["thesis.tex"]


def test_two_recordings_into_one_folder(tmp_path):
    (tmp_path / "program.py").write_text("print('ready', flush=True)\ninput()\n" + TRAINING)
    line = ["record", "--recorder", "observers", "-o", "job", *COUNTS, "--", sys.executable, "program.py"]
    pipe = subprocess.PIPE
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with subprocess.Popen(
        [str(ETUDE), *line], cwd=tmp_path, env=environment, stdin=pipe, stdout=pipe, stderr=pipe
    ) as first:
        assert first.stdout.readline() == b"ready\n"
        second = etude(*line, cwd=tmp_path, stdin=subprocess.DEVNULL)
        assert (second.returncode, second.stdout) == (3, "")
        assert "is writing to this folder" in second.stderr
        _, told = first.communicate(b"\n", timeout=120)
        assert first.returncode == 0, told
    check_traces(captured(tmp_path))
    assert captured(tmp_path).hidden() == []


def test_exit_code_of_the_program(tmp_path):
    assert record(tmp_path, TRAINING + "\nsys.exit(7)").returncode == 7
    check_traces(captured(tmp_path))


def test_killed_program(tmp_path):
    source = TRAINING + "\nimport signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert record(tmp_path, source).returncode == 128 + signal.SIGKILL


def test_program_that_ends_early(tmp_path):
    done = record(tmp_path, program("for _ in range(4): train()"))
    assert done.returncode == 1
    assert "4 steps" in done.stderr and "--warmup 1 --steps 2" in done.stderr
    assert not (tmp_path / "job").exists()


def test_program_that_fails_early_replaces_no_capture(tmp_path):
    record(tmp_path, TRAINING)
    job = tmp_path / "job/job.json"
    before = job.read_text()
    line = ["record", "--force", "-o", "job", "--", sys.executable, "program.py"]
    (tmp_path / "program.py").write_text(program("for _ in range(8): train()\nraise ValueError('mine')"))
    done = etude(*line, cwd=tmp_path)
    assert done.returncode == 1 and "the earlier capture is unchanged" in done.stderr
    assert job.read_text() == before
    (tmp_path / "program.py").write_text(program("for _ in range(8): train()"))
    done = etude(*line, cwd=tmp_path)
    assert done.returncode == 0 and "recorded early" in done.stderr
    assert json.loads(job.read_text())["ranks"]["0"]["native"] == "capture.0.etude"
    assert not (tmp_path / "job/host.0.json.gz").exists()


def test_program_without_torch(tmp_path):
    done = record(tmp_path, "print('hello')", "--summary", "summary.json")
    assert (done.returncode, done.stdout) == (1, "hello\n")
    assert "torch" in done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["captured"] is False and summary["reason"]["code"] == "no-torch"


@pytest.mark.parametrize("option", ["-S", "-I", "-E"])
def test_python_that_skips_the_hook(tmp_path, option):
    done = record(tmp_path, "print('hello')", python=(sys.executable, option))
    assert (done.returncode, done.stdout) == (1, "hello\n")
    assert "-I, -E and -S" in done.stderr


def test_program_that_is_not_there(tmp_path):
    done = etude("record", "-o", "job", "--", "no-such-program", cwd=tmp_path)
    assert done.returncode == 4 and "no-such-program" in done.stderr
    assert not (tmp_path / "job").exists()


def test_nobody_reads_on(tmp_path):
    (tmp_path / "program.py").write_text(program("for _ in range(10): train()"))
    line = shlex.join([str(ETUDE), "record", "--recorder", "observers", "-o", "job", *map(str, COUNTS), "--", sys.executable, "program.py"])
    subprocess.run(["bash", "-c", line + " 2>&1 | true"], cwd=tmp_path, check=True, timeout=120)
    assert {path.name for path in (tmp_path / "job").iterdir()} == {"device.0.json.gz", "host.0.json.gz", "job.json"}


def test_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "mine").mkdir()
    for folder in ("mine", "new"):
        done = etude("record", "-q", "-o", folder, "--", sys.executable, "-c", "1", cwd=tmp_path)
        assert done.returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine"] and not list((tmp_path / "mine").iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "--", "true"],
        ["record", "-o", "job"],
        ["record", "-o", "job", "--steps", "0", "--", "true"],
        ["record", "-o", "", "--", "true"],
        ["record", "-o", "job", "--summary", ".", "--", "true"],
    ],
)
def test_wrong_command_lines(tmp_path, arguments):
    assert etude(*arguments, cwd=tmp_path).returncode == 2


def test_program_with_options_of_its_own(tmp_path):
    (tmp_path / "program.py").write_text("import sys; print(sys.argv[1:])")
    line = ["record", "--recorder", "observers", "-o", "job", "--", sys.executable, "program.py", "--steps", "x", "--", "-o"]
    assert etude(*line, cwd=tmp_path).stdout == "['--steps', 'x', '--', '-o']\n"


def test_streams_and_folder_of_the_program(tmp_path):
    source = "import os, sys; sys.stdout.write(sys.stdin.read()); print(os.getcwd())"
    done = record(tmp_path, source, input="from stdin\n")
    assert done.stdout == f"from stdin\n{tmp_path}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_on(tmp_path, number):
    (tmp_path / "program.py").write_text(
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\n"
        # A signal right before a sleep does not end it, because Python checks signals before and after.
        "for _ in range(1200): time.sleep(0.1)\n"
    )
    line = [str(ETUDE), "record", "-o", "job", "--", sys.executable, "program.py"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"ready\n"
        p.send_signal(number)
        assert p.wait(timeout=240) == 9  # 0 if the signal did not arrive


def test_all_ranks_or_no_success(tmp_path):
    source = (
        SETUP
        + """
import torch.distributed as dist
dist.init_process_group("gloo")
for _ in range(10 if dist.get_rank() == 0 else 4):
    train()
dist.barrier()
"""
    )
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    done = record(tmp_path, source, python=launcher, environment={"GLOO_SOCKET_IFNAME": "lo"})
    assert done.returncode == 1, done.stderr
    assert "1 of 2 ranks are missing, for example rank 1" in done.stderr
