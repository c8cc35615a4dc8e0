"""What watches a program from its start, or that of a block, to its end."""

from __future__ import annotations

import os
from typing import Any

from . import compiler
from .steps import StepFinder, StepListener


class Watcher(StepListener):
    """A listener with the finder that reports to it. In a forked child it is cut off."""

    def __init__(self, torch: Any, kind: str) -> None:
        self._torch = torch
        self._finder = StepFinder(torch, kind, self)

    def attach(self) -> None:
        """Starts watching."""
        compiler.exclude(self._torch)
        self._finder.attach()
        os.register_at_fork(after_in_child=self._cut_off_child)

    def is_idle(self) -> bool:
        """Whether no step mark was seen."""
        return not self._finder.kind

    def mark(self) -> None:
        """An explicit step mark: takes the place of all other kinds from now on."""
        self._finder.mark()

    def _cut_off_child(self) -> None:
        """Runs in a forked child: the steps are the parent's."""
        raise NotImplementedError
