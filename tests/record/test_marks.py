"""The mark by which `etude compare --run` recognises a command that this user ran here: made in Python, checked in
C++."""

import json
import os
import pathlib
import subprocess

import pytest

from etude.recording import marks

ETUDE = os.path.abspath(os.path.join(os.environ["ETUDE_BIN"], "etude"))
CAPTURE = pathlib.Path(__file__).resolve().parents[1] / "data/capture"
# In another folder the command would be another program.
RELATIVE = ["python3", "train.py", "--name", "µ"]
# The folder of the program that ran.
ACCEPTED = "found no step of the program"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path, tmp_path / "other"):
        place.mkdir(exist_ok=True)
        (place / "train.py").write_text("open('ran', 'w')")
    return folder


@pytest.fixture
def absolute(tmp_path):
    return ["python3", "-u", str(tmp_path / "train.py"), "-m"]


def compare(command, mark, job="1-2", cwd=None):
    """Returns the output of `etude compare --run` for a capture with this command and mark."""
    folder = pathlib.Path(os.environ["XDG_STATE_HOME"]).parent / "capture"
    folder.mkdir(exist_ok=True)
    for file in CAPTURE.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    document = json.loads((folder / "job.json").read_text())
    document.update(command=command, job=job, mark=mark)
    (folder / "job.json").write_text(json.dumps({name: value for name, value in document.items() if value is not None}))
    ran = pathlib.Path(cwd or ".") / "ran"
    ran.unlink(missing_ok=True)
    line = [ETUDE, "compare", str(folder), "--run", "-q"]
    done = subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and ran.exists() == (ACCEPTED in done.stderr)
    return done.stderr


@pytest.mark.parametrize("job", ["1-2", None])
def test_own_command(absolute, job):
    for command in (RELATIVE, absolute):
        assert ACCEPTED in compare(command, marks.mark(job, command, os.getcwd()), job)


def test_key_is_the_user_s_alone_and_stays(state):
    mark = marks.mark("1-2", RELATIVE, os.getcwd())
    key = state / "etude/mark.key"
    assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert key.stat().st_size == 32 and os.listdir(key.parent) == ["mark.key"]
    assert marks.mark("1-2", RELATIVE, os.getcwd()) == mark


def test_other_command_or_job_or_user(state, absolute):
    mark = marks.mark("1-2", absolute, os.getcwd())
    assert "did not record it on this machine (its mark belongs to another user" in compare([*absolute, "x"], mark)
    # One word is not equal to two.
    assert "did not record" in compare([*absolute[:-2], "".join(absolute[-2:])], mark)
    assert "did not record" in compare(absolute, mark, "1-3")
    assert "(its job.json has no user mark)" in compare(absolute, None)
    (state / "etude/mark.key").unlink()
    assert "(this user has recorded nothing on this machine)" in compare(absolute, mark)
    marks.mark("1-2", absolute, os.getcwd())
    assert "did not record" in compare(absolute, mark)  # with another key


def test_program_of_another_folder(tmp_path, absolute):
    program = absolute[2]
    relative = marks.mark("1-2", RELATIVE, os.getcwd())
    assert "another user, command or working folder" in compare(RELATIVE, relative, cwd=tmp_path / "other")
    assert ACCEPTED in compare(absolute, marks.mark("1-2", absolute, os.getcwd()), cwd=tmp_path / "other")
    for command in (["./python", program], ["python3", "-m", "torch.distributed.run", program], ["python3"], ["sh", "-c", program]):
        mark = marks.mark("1-2", command, os.getcwd())
        assert "did not record" in compare(command, mark, cwd=tmp_path / "other"), command


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_key_that_others_can_read(state, mode, absolute):
    mark = marks.mark("1-2", absolute, os.getcwd())
    (state / "etude/mark.key").chmod(mode)
    assert "that other users can access, expected mode 0600" in compare(absolute, mark)
    with pytest.raises(marks.NoKey, match="expected mode 0600"):
        marks.mark("1-2", absolute, os.getcwd())


def test_key_that_is_none(state, absolute):
    mark = marks.mark("1-2", absolute, os.getcwd())
    key = state / "etude/mark.key"
    key.rename(key.with_name("other"))
    key.symlink_to("other")
    assert "did not record" in compare(absolute, mark)
    with pytest.raises(marks.NoKey):
        marks.mark("1-2", absolute, os.getcwd())
    key.unlink()
    key.write_bytes(b"short")
    key.chmod(0o600)
    assert "found 5 bytes, expected 32" in compare(absolute, mark)
    key.unlink()
    os.mkfifo(key, 0o600)
    assert "that other users can access" in compare(absolute, mark)
    key.parent.chmod(0o777)
    assert "found write permission for other users" in compare(absolute, mark)
    with pytest.raises(marks.NoKey, match="found write permission for other users"):
        marks.mark("1-2", absolute, os.getcwd())


def test_home_that_cannot_be_written(state, absolute):
    state.write_text("a file where the folder would be")
    with pytest.raises(marks.NoKey, match="mark.key: "):
        marks.mark("1-2", absolute, os.getcwd())
