"""Labels the program's waits for collectives while a step is recorded."""

from __future__ import annotations

from typing import Any, Callable, Optional

from .optimizer_marks import compiling_test

# Label from which traces determine the begin of a wait; also in src/trace/words/operator_name.h.
WAIT_LABEL = "torch.distributed.Work.wait"


def communicates_on_host(torch: Any) -> bool:
    """Returns whether host threads perform the program's communication, as with Gloo."""
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_backend() != "nccl"


class WaitLabels:
    """Puts a label around each `Work.wait` of Gloo, from start to stop.

    `torch.distributed` calls it for synchronous collectives, too. Waits in C++, as in DistributedDataParallel, have no
    label. With NCCL `wait` does not block, so there are none.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._is_compiling = compiling_test(torch)
        self._original: Optional[Callable] = None
        self._ours: Optional[Callable] = None

    def start(self) -> None:
        """Starts labelling if the program communicates over Gloo. No effect if already started."""
        if self._ours is not None or not communicates_on_host(self._torch):
            return
        work = self._torch.distributed.Work
        self._original = work.wait
        self._ours = work.wait = self._make_wait(self._original)

    def stop(self) -> None:
        """Restores the original methods."""
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
