"""ETUDE_RECORD: programs that run normally and are recorded repeatedly."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

import forked_python
import pytest
from conftest import HOOK_FOLDER, PYTHON_FOLDER, SETUP, TWO_RANKS
from etude.recording import duty_settings
from forked_python import END_OF_RANK

BIN = pathlib.Path(os.environ["ETUDE_BIN"])
LIBRARY = (BIN.parent / "lib/etude/libetude_recorder.so").resolve()


class Run:
    def __init__(self, folder):
        self.folder = folder / "duty"
        self._work = folder

    def __call__(self, source, settings, launcher=(), code=0, environment=None, setup=SETUP):
        script = self._work / "program.py"
        script.write_text(setup + textwrap.dedent(source))
        values = {k: v for k, v in os.environ.items() if not k.startswith("ETUDE_")}
        values["PYTHONPATH"] = str(HOOK_FOLDER)
        values["OMP_NUM_THREADS"] = "1"
        values["ETUDE_RECORD"] = settings.format(dir=self.folder, library=LIBRARY)
        values["ETUDE_CACHE_DIR"] = str(self._work / "cache")
        values.update(environment or {})
        how = {"env": values, "cwd": self._work, "timeout": 180}
        if launcher:
            line = [sys.executable, *launcher, str(script)]
            done = subprocess.run(line, capture_output=True, text=True, **how)
        else:
            done = forked_python.run([str(script)], **how)
        assert done.returncode == code, done.stderr
        self.out, self.err = done.stdout, done.stderr
        return self

    def names(self):
        return sorted(p.name for p in self.folder.iterdir() if not p.name.startswith("."))

    def hidden(self):
        return sorted(p.name for p in self.folder.iterdir() if p.name.startswith(".") and p.name != ".lock")

    def job(self, name):
        return json.loads((self.folder / name / "job.json").read_text())


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def info(path):
    done = subprocess.run([BIN / "etude", "info", "--json", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["traces"]


def steps_of(path):
    done = subprocess.run([BIN / "etude", "info", path], capture_output=True, text=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("  steps")]
    return line


def test_every_so_many_steps(run):
    run("for _ in range(34): train()", "dir={dir},every=10,library={library}")
    assert (run.out, run.err) == ("", "")
    assert run.names() == ["step-000000010", "step-000000020", "step-000000030"]
    assert run.hidden() == []
    folder = run.folder / "step-000000020"
    assert sorted(p.name for p in folder.iterdir()) == ["capture.0.etude", "job.json"]
    rank = run.job("step-000000020")["ranks"]["0"]
    assert rank["recorded_step"]["index"] == 20 and rank["recorded_step"]["wall_ns"] > 0
    # The preceding steps, except the first, whose begin was not seen, and the recorded one.
    assert [step["index"] for step in rank["timed_steps"]] == [*range(1, 10), *range(11, 20)]
    assert rank["timed_block"]["steps"] == 18
    assert [s["timed"] for s in rank["signatures"]] == [18]
    assert steps_of(folder).endswith("ProfilerStep#20")
    assert info(folder)[0]["rank"] == 0


def test_several_steps_and_the_newest_kept(run):
    run("for _ in range(34): train()", "dir={dir},every=10,steps=3,keep=2,library={library}")
    assert run.names() == ["step-000000020", "step-000000030"]
    assert run.job("step-000000030")["ranks"]["0"]["recorded_step"]["steps"] == 3
    assert "3: ProfilerStep#20" in steps_of(run.folder / "step-000000020").replace("  ", " ")


def test_observers_on_duty(run):
    run("for _ in range(24): train()", "dir={dir},every=10,recorder=observers")
    assert run.names() == ["step-000000010", "step-000000020"]
    names = sorted(p.name for p in (run.folder / "step-000000020").iterdir())
    assert names == ["device.0.json.gz", "host.0.json.gz", "job.json"]


def test_without_the_library_it_says_so_in_the_notes(run):
    run("for _ in range(14): train()", "dir={dir},every=10")
    notes = run.job("step-000000010")["ranks"]["0"]["notes"]
    assert any("native recorder was not built" in note for note in notes)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("every=10", "missing folder, expected dir=FOLDER"),
        ("dir=x", "missing every=N or signal=NAME"),
        ("dir=x,evry=10", "did you mean every?"),
        ("dir=x,every=ten", "every: found 'ten', expected a whole number"),
        ("dir=x,every=10,every=20", "found every twice"),
        ("dir=x,every", "found 'every', expected NAME=VALUE"),
        ("dir=x,signal=KILL", "signal: found 'KILL'"),
        ("dir=x,every=5,max_bytes=1X", "max_bytes: found '1X'"),
        ("dir=x,every=5,max_bytes=0", "max_bytes: found '0'"),
        ("dir=x,every=5,max_bytes=1mb", "max_bytes: found '1mb'"),
        ("dir=x,every=5,max_bytes=1.0001KiB", "max_bytes: found '1.0001KiB'"),
        ("dir=x,every=5,max_bytes=8388608TiB", "max_bytes: found '8388608TiB'"),
        ("dir=x,every=0", "missing every=N or signal=NAME"),
        ("dir=x,every=5,recorder=best", "recorder: found 'best'"),
    ],
)
def test_bad_settings_are_refused(settings, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        duty_settings.parse(settings)


def test_sizes_are_those_of_the_commands():
    """Tests each unit of src/base/text/quantity.cc, and the short ones."""
    source = (pathlib.Path(__file__).parents[2] / "src/base/text/quantity.cc").read_text()
    table = source[source.index("kByteUnits[]") :].partition("};")[0]
    units = re.findall(r'\{"(\w*)", (?:int64_t\{1\} << (\d+)|([\d\']+))\}', table)
    assert len(units) == table.count('{"')
    known = {name: 1 << int(shift) if shift else int(factor.replace("'", "")) for name, shift, factor in units}
    known.update(M=10**6, Gi=2**30)
    for unit, factor in known.items():
        for text, size in ((f"6{unit}", 6 * factor), (f"1.50 {unit}", factor * 3 // 2)):
            if factor > 1 or text == "6":
                assert duty_settings.parse(f"dir=x,every=5,max_bytes={text}").max_bytes == size


def test_none_is_nothing_too():
    duty = duty_settings.parse("dir=x,every=0,signal=USR1,index_values=0")
    assert (duty.every, duty.index_values) == (0, 0)


def test_bad_settings_are_said_once(run):
    source = """
    import subprocess
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    for _ in range(12): train()
    print("done")
    """
    run(source, "dir={dir},evry=10")
    assert run.out == "done\n"
    assert len(run.err.splitlines()) == 1 and "did you mean every?" in run.err and "recording is off" in run.err
    assert not run.folder.exists()


def test_a_folder_that_cannot_be_made(run):
    run("for _ in range(12): train()", "dir=/proc/nothing,every=5,library={library}")
    assert len(run.err.splitlines()) == 1 and "no more recordings" in run.err


def test_most_bytes(run):
    source = "for _ in range(60): train()"
    run(source, "dir={dir},every=10,max_bytes=6K,library={library}")
    assert run.names() == ["step-000000010", "step-000000020"]
    assert run.err.count("\n") == 1 and "max_bytes=6000" in run.err


def test_most_seconds(run):
    source = """
    import time
    for _ in range(15): train()
    time.sleep(1.2)
    for _ in range(15): train()
    """
    run(source, "dir={dir},every=10,max_seconds=1,library={library}")
    assert not (run.folder / "step-000000020").exists()
    assert run.err.count("\n") == 1 and "max_seconds=1 reached" in run.err


def test_a_signal_and_the_handler_of_the_program(run):
    source = """
    import signal
    got = []
    signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
    for step in range(20):
        if step in (7, 12): os.kill(os.getpid(), signal.SIGUSR1)
        train()
    print(len(got))
    """
    run(source, "dir={dir},signal=USR1,library={library}")
    assert (run.out, run.err) == ("2\n", "")
    assert run.names() == ["step-000000008", "step-000000013"]


def test_a_signal_that_nobody_asked_for_ends_the_program_as_ever(run):
    source = """
    import signal
    for step in range(20): train()
    os.kill(os.getpid(), signal.SIGUSR2)
    """
    run(source, "dir={dir},signal=USR1,library={library}", code=-signal.SIGUSR2)


def test_a_program_that_runs_again(run):
    run("for _ in range(24): train()", "dir={dir},every=10,library={library}")
    first = run.job("step-000000010")["ranks"]["0"]["pid"]
    for name in ("step-000000010", "step-000000020"):
        for path in (run.folder / name, run.folder / name / "job.json"):
            os.utime(path, (1e9, 1e9))
    (run.folder / ".step-000000010").mkdir()
    (run.folder / ".step-000000010/job.json").write_text("{cut")
    os.utime(run.folder / ".step-000000010", (1e9, 1e9))
    run("for _ in range(14): train()", "dir={dir},every=10,library={library}")
    assert run.err == ""
    assert run.job("step-000000010")["ranks"]["0"]["pid"] != first
    assert run.names() == ["step-000000010", "step-000000020"] and run.hidden() == []


def test_two_programs_do_not_share_a_folder(run):
    source = """
    import subprocess
    if len(sys.argv) == 1:
        for _ in range(14): train()
        subprocess.run([sys.executable, __file__, "second"], check=True)
    else:
        for _ in range(14): train()
    """
    run(source, "dir={dir},every=10,library={library}")
    assert run.names() == ["step-000000010"]


def test_the_programs_own_profiler_goes_first(run):
    source = """
    for step in range(34):
        if step == 19:
            with torch.profiler.profile() as profile:
                train(); train(); train()
            assert len(profile.events()) > 10
        else:
            train()
    """
    run(source, "dir={dir},every=10,library={library}")
    assert run.err == ""
    assert run.names() == ["step-000000010", "step-000000030"]
    assert run.hidden() == []


@pytest.mark.parametrize("where", ["start", "stop", "publish"])
def test_a_recording_that_fails_leaves_no_folder(run, where):
    source = f"""
    from _etude_recording.native_recording import NativeRecording
    def fails(*_): raise OSError("odd")
    NativeRecording.{where} = fails
    for _ in range(14): train()
    """
    run(source, "dir={dir},every=10,library={library}")
    assert run.err == "etude: ETUDE_RECORD: no more recordings: OSError: odd\n"
    assert run.names() == [] and run.hidden() == [".stopped"]


def test_children_record_nothing(run):
    source = """
    light_torch.load()
    data = torch.utils.data.TensorDataset(torch.randn(40, 8), torch.randn(40, 4))
    for x, y in torch.utils.data.DataLoader(data, batch_size=1, num_workers=2):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if os.fork() == 0:
            for _ in range(3): train()
            os._exit(0)
        os.wait()
    """
    run(source, "dir={dir},every=10,signal=USR1,library={library}")
    assert run.err == ""
    assert run.names() == ["step-000000010", "step-000000020", "step-000000030"]


RANKS = """
import torch.distributed as dist
dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(model)
rank = dist.get_rank()
"""
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")


def test_ranks_record_the_same_steps(run):
    source = RANKS + """
for _ in range(24): train()
""" + END_OF_RANK
    run(source, "dir={dir},every=10,library={library}", TORCHRUN)
    assert "ETUDE_RECORD" not in run.err
    assert run.names() == ["step-000000010", "step-000000020"] and run.hidden() == []
    folder = run.folder / "step-000000020"
    assert sorted(p.name for p in folder.iterdir()) == ["capture.0.etude", "capture.1.etude", "job.json"]
    assert [trace["rank"] for trace in info(folder)] == [0, 1]


def test_ranks_with_one_process_number(run, tmp_path):
    """Ranks in containers that share the folder may have the same process number."""
    (tmp_path / "sitecustomize.py").write_text("import os; os.getpid = lambda: 7\n")
    source = RANKS + """
for _ in range(24): train()
""" + END_OF_RANK
    environment = {"PYTHONPATH": f"{HOOK_FOLDER}{os.pathsep}{tmp_path}"}
    run(source, "dir={dir},every=10,library={library}", TWO_RANKS, environment=environment)
    assert "ETUDE_RECORD" not in run.err
    assert run.names() == ["step-000000010", "step-000000020"] and run.hidden() == []
    assert [trace["rank"] for trace in info(run.folder / "step-000000020")] == [0, 1]


def test_a_signal_to_one_rank_records_all(run):
    source = RANKS + """
import signal
for step in range(40):
    if rank == 1 and step == 9: os.kill(os.getpid(), signal.SIGUSR1)
    train()
""" + END_OF_RANK
    run(source, "dir={dir},signal=USR1,library={library}", TWO_RANKS)
    # Seen at the mark of step 10, and finished at the second multiple of 8 after it.
    assert run.names() == ["step-000000024"]
    assert set(run.job("step-000000024")["ranks"]) == {"0", "1"}


def test_what_a_rank_lacks_has_no_name(run):
    # Rank 1 stops because of its limit. Rank 0 must not continue alone, and its files do not appear as a job.
    source = RANKS + """
for _ in range(44): train()
""" + END_OF_RANK
    setup = SETUP.replace("import os, sys, time\n", """
import os, sys, time
if os.environ.get("RANK") == "1":
    os.environ["ETUDE_RECORD"] += ",max_bytes=1K"
""", 1)
    run(source, "dir={dir},every=10,library={library}", TORCHRUN, setup=setup)
    assert run.names() == ["step-000000010"]
    assert run.err.count("no more recordings") == 1
    assert len(run.hidden()) <= 2 and ".stopped" in run.hidden()


def test_a_rank_that_makes_no_steps(run):
    source = """
    import torch.distributed as dist
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        for _ in range(54): train()
    """
    run(textwrap.dedent(source) + END_OF_RANK, "dir={dir},every=10,library={library}", TWO_RANKS)
    assert run.names() == [] and len(run.hidden()) == 2
    assert run.err.count("removed the recording of step 10 because ranks are missing") == 1


def test_the_environment_that_etude_record_prints(run, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(SETUP + "for _ in range(14): train()\n")
    settings = f"dir={tmp_path}/a b's,every=10"
    quoted = "'" + settings.replace("'", "'\\''") + "'"
    line = f'eval "$("{BIN}/etude" record --print-environment {quoted})"; "{sys.executable}" "{script}"'
    values = {k: v for k, v in os.environ.items() if not k.startswith("ETUDE_") and k != "PYTHONPATH"}
    done = subprocess.run(["sh", "-ec", line], capture_output=True, text=True, env=values, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    names = sorted(p.name for p in (tmp_path / "a b's/step-000000010").iterdir())
    assert names == ["capture.0.etude", "job.json"]


@pytest.mark.parametrize(
    "settings, why",
    [("dri=x,every=5", "did you mean dir?"), ("dir=x", "missing every=N or signal=NAME"), ("dir=x,every=soon", "found 'soon'")],
)
def test_wrong_settings_are_refused_where_they_are_printed(settings, why):
    command = [f"{BIN}/etude", "record", "--print-environment", settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "") and why in done.stderr


def test_the_startup_file_of_the_wheel(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    for name in ("etude_record.pth", "_etude_record.py", "etude"):
        (site / name).symlink_to(PYTHON_FOLDER / name)
    code = (
        f"import site, sys; before = set(sys.modules); site.addsitedir({str(site)!r}); "
        "print(sorted(set(sys.modules) - before))"
    )
    values = {k: v for k, v in os.environ.items() if not k.startswith("ETUDE_") and k != "PYTHONPATH"}

    def start(program, **environment):
        done = subprocess.run([sys.executable, "-c", program], env={**values, **environment},
                              capture_output=True, text=True, timeout=60)  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert start(code) == "[]\n"
    program = code + "\n" + SETUP + "for _ in range(14): train()\nprint('etude' in sys.modules)"
    assert "False" in start(program, ETUDE_RECORD=f"dir={tmp_path}/duty,every=10,library={LIBRARY}")
    assert (tmp_path / "duty/step-000000010/capture.0.etude").exists()
