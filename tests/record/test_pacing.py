"""Programs under `etude compare --run`; without torch."""

import importlib
import sys

import pytest
from conftest import PYTHON_FOLDER

sys.path.insert(0, str(PYTHON_FOLDER))
pacing = importlib.import_module("etude.recording.pacing")


class Interrupted:
    def read(self):
        raise KeyboardInterrupt


def test_ctrl_c_ends_a_waiting_program_without_a_traceback(monkeypatch):
    pacer = pacing.Pacer.__new__(pacing.Pacer)
    detached = []
    monkeypatch.setattr(pacer, "_detach", lambda: detached.append(True), raising=False)
    monkeypatch.setattr(pacer, "_ready", True, raising=False)
    monkeypatch.setattr(pacer, "_channel", Interrupted(), raising=False)
    with pytest.raises(SystemExit) as ended:
        pacer._await_turn()
    assert ended.value.code == 130 and ended.value.__suppress_context__ and detached
