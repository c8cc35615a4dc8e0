"""Resident memory of this process."""

from __future__ import annotations

import resource
from typing import Any, Dict, Optional


def resident_bytes() -> Optional[int]:
    """Returns the memory in use; None if it is unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return None


def peak_resident_bytes() -> Optional[int]:
    """Returns the peak of the current peak interval, or else of the process; None if it is unknown."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    return None


def begin_peak() -> bool:
    """Begins a new peak interval. Returns False if the kernel supports only the peak of the whole lifetime."""
    try:
        with open("/proc/self/clear_refs", "wb", buffering=0) as file:
            file.write(b"5")
        return True
    except OSError:
        return False


class StepMemory:
    """Memory that steps add to the memory in use before the first one.

    Uses the peak of the process's lifetime without resetting it, because the program may read it itself (`ru_maxrss`).
    It therefore includes the buffers of a step that was recorded before.
    """

    def __init__(self, finder: Any) -> None:
        self._finder = finder
        self._first_call: Optional[int] = None
        self._trained: Optional[int] = None
        self._peak_before: Optional[int] = None
        self._peak: Optional[int] = None

    def watch(self) -> None:
        """Reads the memory in use at the first calls of outermost modules, until `stop`."""
        self._finder.modules.on_enter = self._enter

    def stop(self) -> None:
        """Called when the first step is over."""
        if self._finder.modules.on_enter == self._enter:
            self._finder.modules.on_enter = None

    def step_ended(self) -> None:
        """Called when a timed, unrecorded step has ended."""
        self._peak = peak_resident_bytes()

    def to_json(self) -> Optional[Dict[str, int]]:
        """Returns the entry of job.json; None if no step exceeded the peak before the first one."""
        before = self._trained if self._finder.kind == "optimizer" else self._first_call
        if before is None or self._peak is None or self._peak_before is None or self._peak <= self._peak_before:
            return None
        return {"before_steps_bytes": before, "peak_bytes": self._peak}

    def _enter(self, module: Any) -> None:
        # Calls before the first optimizer exists belong to the construction of the model.
        if self._first_call is None:
            self._first_call = resident_bytes()
            self._peak_before = peak_resident_bytes()
        if self._finder.optimizers.known() > 0:
            self._trained = resident_bytes()
            self._peak_before = peak_resident_bytes()
            self.stop()
