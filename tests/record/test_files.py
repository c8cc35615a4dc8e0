"""Names of files that are being written, in a folder that processes on several machines share; without torch."""

import importlib.util
import os

import pytest
from conftest import PYTHON_FOLDER

from etude.recording import files as own_files
from etude.recording import replacement, status


def another_process():
    """Returns the module as another process sees it."""
    path = PYTHON_FOLDER / "etude" / "recording" / "files.py"
    spec = importlib.util.spec_from_file_location("files_of_another_process", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_processes_with_one_number_have_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 7)  # as ranks in containers may have
    ours, theirs = another_process(), another_process()
    paths = [files.temporary(str(tmp_path), "recording") for files in (ours, theirs)]
    assert paths[0] != paths[1] and paths[0] == ours.temporary(str(tmp_path), "recording")
    for path in paths:
        assert os.path.basename(path).startswith(".tmp-")  # the pattern that `etude record` recognises
        with open(path, "w"):
            pass
    ours.remove_temporaries(str(tmp_path))
    assert os.listdir(tmp_path) == [os.path.basename(paths[1])]


def test_a_forked_child_has_files_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 7)
    files = another_process()
    name = files.temporary("", "check")
    child = os.fork()
    if child == 0:
        same = True
        try:
            same = files.temporary("", "check") == name
        finally:
            os._exit(same)
    assert os.waitpid(child, 0)[1] == 0


def test_processes_with_one_number_have_statuses_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 7)
    statuses = []
    for files in (another_process(), another_process()):
        monkeypatch.setattr(status, "files", files)
        statuses.append(status.Status(str(tmp_path)))
        statuses[-1].write()
    assert len(list(tmp_path.glob(".etude-status.7-*.json"))) == 2
    statuses[0].remove()
    assert len(os.listdir(tmp_path)) == 1


# Entries that a folder from someone else may have in place of files.


def test_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "job.json")
    with pytest.raises(ValueError, match="job.json: found a pipe"):
        own_files.read_json(str(tmp_path), "job.json")


def test_deep_json_is_no_document(tmp_path):
    (tmp_path / "job.json").write_text("[" * 100_000)
    with pytest.raises(ValueError):
        own_files.read_json(str(tmp_path), "job.json")


def test_nothing_is_written_through_a_link(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in (".lock", "status.json", "job.json"):
        (folder / name).symlink_to(mine)
    with pytest.raises(OSError):
        with own_files.locked(str(folder)):
            pass
    with pytest.raises(OSError):
        own_files.overwrite_json(str(folder), "status.json", {})
    own_files.write_json(str(folder), "job.json", {})
    assert mine.read_text() == "mine" and not (folder / "job.json").is_symlink()


def test_a_folder_to_record_into_is_no_link(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "host.0.json.gz").write_text("mine")
    (elsewhere / "job.json").write_text('{"format": "etude-job", "ranks": {"0": {}}}')
    (tmp_path / ".etude-recording").symlink_to(elsewhere)
    made = replacement.Replacement(str(tmp_path), 0, 1)
    assert os.path.isdir(made.folder) and not os.path.islink(made.folder)
    assert (elsewhere / "host.0.json.gz").read_text() == "mine"
