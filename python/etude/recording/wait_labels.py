"""Labels where the program waits for collectives while a step is recorded."""

from __future__ import annotations

from typing import Any, Callable, Optional

from .optimizer_marks import compiling_test

# A trace tells by it when a program began to wait: src/trace/operator_name.h has the same.
WAIT_LABEL = "torch.distributed.Work.wait"


class WaitLabels:
    """Puts a label around each `Work.wait` of Gloo's, from start to stop.

    `torch.distributed` calls it for synchronous collectives, too. What waits in C++, as
    DistributedDataParallel does, has no label. Over NCCL `wait` does not wait: there are none.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._is_compiling = compiling_test(torch)
        self._work: Any = None  # the class, while it is changed
        self._original: Optional[Callable] = None
        self._ours: Optional[Callable] = None

    def start(self) -> None:
        """Begins, where the program communicates over Gloo. Does nothing if it has begun."""
        distributed = self._torch.distributed
        if self._work is not None or not distributed.is_available():
            return
        if not distributed.is_initialized() or distributed.get_backend() == "nccl":
            return
        self._work = distributed.Work
        self._original = self._work.wait
        self._ours = self._make_wait(self._original)
        self._work.wait = self._ours

    def stop(self) -> None:
        """Puts everything back."""
        if self._work is not None and self._work.wait is self._ours:
            self._work.wait = self._original
        self._work = self._ours = None

    def _make_wait(self, original: Callable) -> Callable:
        label = self._torch.autograd.profiler.record_function
        is_compiling = self._is_compiling
        owner = self

        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or owner._ours is not wait:
                return original(work, *args, **kwargs)
            with label(WAIT_LABEL):
                return original(work, *args, **kwargs)

        return wait
