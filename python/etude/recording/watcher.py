"""Observers of a program, or of a block, from start to end."""

from __future__ import annotations

import os
from typing import Any

from . import compiler
from .fork import skip_library_destructors
from .steps import StepFinder, StepListener

# Steps in which outermost modules may still appear.
LEARNING_STEPS = 3


class Watcher(StepListener):
    """A listener and its finder. Disabled in a forked child."""

    def __init__(self, torch: Any, kind: str) -> None:
        self._torch = torch
        self._finder = StepFinder(torch, kind, self)

    def attach(self) -> None:
        """Starts observing."""
        compiler.exclude(self._torch)
        self._finder.attach()
        os.register_at_fork(after_in_child=self._cut_off_child)

    def is_idle(self) -> bool:
        """Returns whether no step mark was seen."""
        return not self._finder.kind

    def mark(self) -> None:
        """Marks a step explicitly; replaces all other kinds of marks from now on."""
        self._finder.mark()

    def _cut_off_child(self) -> None:
        """Runs in a forked child: the steps are the parent's."""
        raise NotImplementedError


class RecordingWatcher(Watcher):
    """A watcher that makes recordings. `_profiled`: one has used PyTorch's profiler."""

    def __init__(self, torch: Any, kind: str) -> None:
        super().__init__(torch, kind)
        self._pid = os.getpid()
        self._closed = False
        self._profiled = False
        self._recording: Any = None

    def _cut_off_child(self) -> None:
        """Runs in a forked child: the recording is the parent's."""
        if self._profiled:
            skip_library_destructors()
        if self._closed:
            return
        self._closed = True
        if self._recording is not None:
            self._recording.cut_off_child()
        self._finder.detach()
