"""Writes the state of a recording to one small file per process.

`etude record` reads it if there is no capture. It is written at each phase of a recording, not only at the end, so that
it survives `os._exit` and a kill.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Dict, Optional

from . import files

PREFIX = ".etude-status."


class Status:
    """The status of this process. `write` never raises: a full disk must not stop a program."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._pid = os.getpid()
        self._name = f"{PREFIX}{files.process()}.json"
        self._fields: Dict[str, Any] = {}

    def set(self, **fields: Any) -> None:
        """Changes fields; None removes one."""
        for name, value in fields.items():
            if value is None:
                self._fields.pop(name, None)
            else:
                self._fields[name] = value

    def get(self, name: str) -> Any:
        return self._fields.get(name)

    def to_json(self) -> dict:
        head = {
            "format": "etude-record-status",
            "version": 1,
            "pid": self._pid,
            "program": sys.argv[0] if getattr(sys, "argv", None) else "",
        }
        return {**head, **self._fields}

    def write(self) -> None:
        try:
            files.write_json(self._directory, self._name, self.to_json())
        except OSError:
            # On a full disk the existing file may still have room.
            with contextlib.suppress(OSError):
                files.overwrite_json(self._directory, self._name, self.to_json())

    def remove(self) -> None:
        """Removes the file."""
        with contextlib.suppress(OSError):
            os.remove(os.path.join(self._directory, self._name))


def suggest(seen: int, learnt: int, warmup: int, steps: int, record: int) -> Optional[dict]:
    """Returns the largest --warmup and --steps that fit in `seen` steps; None if nothing fits.

    `learnt`: number of steps before steps could be identified.
    """
    room = seen - record
    least = max(1, learnt)
    if room < least + 1:
        return None
    fitting_warmup = min(max(warmup, least), max(least, room // 4))
    return {"warmup": fitting_warmup, "steps": min(steps, room - fitting_warmup)}
