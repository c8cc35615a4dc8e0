"""The status for the command line if there is no capture."""

import pathlib
import re

import pytest
from conftest import check_traces, program

from etude.recording import job


def test_program_that_ends_early_gets_counts_that_fit(run):
    result = run(program("for _ in range(9): train()"), warmup=5, steps=20)
    assert result.code == 0 and result.rank()["recorded_step"]["early"]
    status = result.status()
    assert (status["code"], status["steps_seen"]) == ("ended-early", 9)
    assert status["suggest"] == {"warmup": 2, "steps": 6}
    assert "26 are required" in status["reason"]


@pytest.mark.parametrize("count", [3, 5, 9, 20])
def test_suggested_counts_do_fit(run, count):
    source = program(f"for _ in range({count}): train()")
    early = run(source, warmup=30, steps=30)
    fits = early.status()["suggest"]
    (early.folder / "job.json").unlink(missing_ok=True)
    result = run(source, warmup=fits["warmup"], steps=fits["steps"])
    check_traces(result)
    assert len(result.rank()["timed_steps"]) == fits["steps"]


def test_too_few_steps_for_any_counts(run):
    status = run(program("for _ in range(2): train()")).status()
    assert status["code"] == "ended-early" and "suggest" not in status


def test_torch_without_steps(run):
    status = run("import torch; torch.ones(3) + 1").status()
    assert (status["code"], status["steps_seen"]) == ("no-step", 0)


def test_optimizer_that_never_steps(run):
    status = run(program("model(torch.randn(1, 8))")).status()
    assert status["code"] == "no-step" and "never stepped" in status["reason"]


def test_profiler_steps_asked_for_but_not_made(run):
    source = program("for _ in range(4): train()")
    status = run(source, environment={"ETUDE_RECORD_KIND": "profiler"}).status()
    assert status["code"] == "no-step" and "profiler.step()" in status["reason"]
    assert "never stepped" not in status["reason"] and "optimizer steps" in status["reason"]


def test_full_disk_is_the_reason(run):
    """No file can be created from the fourth step on. The status overwrites the existing one."""
    result = run(
        program(
            """
            import errno
            from _etude_recording import files
            def full(*arguments):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            for i in range(10):
                if i == 4:
                    files.write_json = files.check_writable = full
                train()
            """
        )
    )
    assert (result.code, result.err, result.names()) == (0, "", [])
    status = result.status()
    assert status["code"] == "disk-full" and "is full" in status["reason"]


def test_exception_is_named(run):
    result = run(program("train(); train(); raise KeyError('x')"))
    assert result.code == 1
    assert "KeyError" in result.status()["reason"]


def test_bad_variable_does_not_stop_the_program(run):
    result = run(program("train(); print('fine')"), environment={"ETUDE_RECORD_STEPS": "many"})
    assert result.out == "fine\n"
    assert "ETUDE_RECORD_STEPS" in result.status()["reason"]


def test_second_process_of_the_same_rank_is_refused(run):
    result = run(
        program(
            """
            import subprocess
            for _ in range(10):
                train()
            if len(sys.argv) == 1:
                subprocess.run([sys.executable, __file__, "again"], check=True)
            """
        )
    )
    check_traces(result)
    codes = sorted(str(status.get("code")) for status in result.statuses())
    assert codes == ["None", "rank-taken"]


def test_folder_that_cannot_be_written(run):
    result = run(
        program("for _ in range(10): train()\nprint('fine')"),
        environment={"ETUDE_RECORD_DIR": "/proc/no/such/folder"},
    )
    assert (result.code, result.out, result.err) == (0, "fine\n", "")


def test_launchers_name_the_rank(run):
    source = program("for _ in range(10): train()")
    result = run(source, environment={"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"})
    assert result.names() == ["device.1.json.gz", "host.1.json.gz", "job.json"]


def test_launchers_are_those_of_replays():
    launchers = (pathlib.Path(__file__).parents[2] / "src/cli/app/launcher.cc").read_text()
    known = re.findall(r'LauncherInfo\{"[^"]+", "(\w+)", "(\w+)"', launchers)
    assert known == list(job._RANK_VARIABLES)
