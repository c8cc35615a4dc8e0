"""Starts the recording or the pacing of an unmodified program; called by the hook.

ETUDE_RECORD_DIR is set by `etude record`, which waits for one capture, and by `etude compare`. ETUDE_RECORD is set by
users who want a program to be recorded repeatedly.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, Optional

from .settings import from_environment
from .status import Status

_RECORDER_MARK = "etude_recorder"
_COMPLAINED = "ETUDE_RECORD_COMPLAINED"
# Silences lines that torch and Kineto write when the observer and the profiler start and stop.
QUIET_LEVELS = {"TORCH_CPP_LOG_LEVEL": "ERROR", "KINETO_LOG_LEVEL": "99"}


def quiet_logs() -> None:
    """Asks torch's native libraries not to report a recording's actions. Call before their import.

    Existing levels are kept. Other warnings of these libraries are silenced as well.
    """
    for name, level in QUIET_LEVELS.items():
        os.environ.setdefault(name, level)


def install(torch: Any) -> None:
    """Makes and attaches the recorder, or the pacer, of this process, unless it has one. Never raises."""
    if active(torch) is not None:
        return
    if "ETUDE_RECORD_DIR" in os.environ:
        _install_recorder(torch)
    else:
        _install_duty(torch)


def _install_recorder(torch: Any) -> None:
    directory = os.environ.get("ETUDE_RECORD_DIR", "")
    try:
        recorder = _make(torch)
        recorder.attach()
        set_active(torch, recorder)
        atexit.register(_at_exit, recorder)
    except Exception as error:
        status = Status(directory)
        status.set(code="internal", reason=f"{type(error).__name__}: {error}")
        status.write()


def _make(torch: Any) -> Any:
    from . import pacing
    from .recorder import Recorder

    if os.environ.get(pacing.CAPTURE):
        return pacing.Pacer(torch, os.environ)
    return Recorder(torch, from_environment(os.environ))


def _install_duty(torch: Any) -> None:
    if _COMPLAINED in os.environ:
        return
    try:
        from .duty import Duty
        from .duty_settings import parse, settings_of

        duty = parse(os.environ["ETUDE_RECORD"])
        recorder = Duty(torch, duty, settings_of(duty), lambda: set_active(torch, None))
        recorder.attach()
        set_active(torch, recorder)
        atexit.register(_at_exit, recorder)
    except Exception as error:
        # Once for this process and its children.
        os.environ[_COMPLAINED] = "1"
        text = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        print(f"etude: ETUDE_RECORD: {text}; recording is off", file=sys.stderr)


def active(torch: Any) -> Optional[Any]:
    """Returns the active recorder of this process, whoever started it; None if there is none."""
    return torch.optim.__dict__.get(_RECORDER_MARK)


def set_active(torch: Any, recorder: Optional[Any]) -> None:
    """Stores the recorder where a second copy of this package finds it, too."""
    if recorder is None:
        torch.optim.__dict__.pop(_RECORDER_MARK, None)
    else:
        torch.optim.__dict__[_RECORDER_MARK] = recorder


def _at_exit(recorder: Any) -> None:
    if recorder.is_idle() and _is_worker():
        return
    error = getattr(sys, "last_value", None)
    recorder.close(f"it ended with {type(error).__name__}" if error is not None else None)


def _is_worker() -> bool:
    """Returns whether this is a child of multiprocessing, such as a data loader's worker."""
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is not None and multiprocessing.parent_process() is not None
