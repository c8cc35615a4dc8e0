"""Names of files that are being written, in a folder that processes of several machines share; without torch."""

import importlib.util
import os

from conftest import PYTHON_FOLDER

from etude.recording import status


def another_process():
    """The module as another process has it."""
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
        assert os.path.basename(path).startswith(".tmp-")  # by which `etude record` knows them
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
