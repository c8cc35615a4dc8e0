"""Labels where the program waits for collectives while a step is recorded."""

from __future__ import annotations

from typing import Any, Callable, Optional

from .optimizer_marks import compiling_test

# A trace tells by it when a program began to wait: src/trace/words/operator_name.h has the same.
WAIT_LABEL = "torch.distributed.Work.wait"


def communicates_on_host(torch: Any) -> bool:
    """Whether threads of the host do what the program communicates, as Gloo's."""
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_backend() != "nccl"


class WaitLabels:
    """Puts a label around each `Work.wait` of Gloo's, from start to stop.

    `torch.distributed` calls it for synchronous collectives, too. What waits in C++, as
    DistributedDataParallel does, has no label. Over NCCL `wait` does not wait: there are none.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._is_compiling = compiling_test(torch)
        self._original: Optional[Callable] = None
        self._ours: Optional[Callable] = None

    def start(self) -> None:
        """Begins, where the program communicates over Gloo. Does nothing if it has begun."""
        if self._ours is not None or not communicates_on_host(self._torch):
            return
        work = self._torch.distributed.Work
        self._original = work.wait
        self._ours = work.wait = self._make_wait(self._original)

    def stop(self) -> None:
        """Puts everything back."""
        if self._ours is None:
            return
        work = self._torch.distributed.Work
        if work.wait is self._ours:
            work.wait = self._original
        self._ours = None

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
