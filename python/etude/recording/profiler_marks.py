"""Observes the program's own use of profilers, so that a recording never interferes with it."""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any, Callable, Iterator, List, Tuple


class ProfilerMarks:
    """The program's `profiler.step()` calls, and whether it uses a profiler.

    `before_step` and `after_step` are called around each `torch.profiler.profile.step`; `on_start` is called before a
    profiler or an execution trace observer of the program starts.
    """

    def __init__(
        self,
        torch: Any,
        before_step: Callable[[], None],
        after_step: Callable[[], None],
        on_start: Callable[[], None],
    ) -> None:
        self._torch = torch
        self._enabled = torch.autograd._profiler_enabled
        self._before_step = before_step
        self._after_step = after_step
        self._on_start = on_start
        self._prepared: weakref.WeakSet = weakref.WeakSet()
        self._own = False
        self._undo: List[Tuple[Any, str, Callable, Callable]] = []

    def attach(self) -> None:
        """Starts observing. Free of cost for a program that never profiles."""
        profiler = self._torch.profiler
        legacy = self._torch.autograd.profiler
        self._replace(profiler.profile, "step", self._step)
        self._replace(profiler.ExecutionTraceObserver, "register_callback", self._register)
        self._replace(legacy.profile, "_prepare_trace", self._prepare)
        self._replace(legacy.profile, "__exit__", self._exit)
        for name in ("emit_nvtx", "emit_itt"):
            if hasattr(legacy, name):
                self._replace(getattr(legacy, name), "__enter__", self._register)

    def detach(self) -> None:
        """Restores the methods."""
        for owner, name, ours, original in reversed(self._undo):
            if owner.__dict__.get(name) is ours:
                setattr(owner, name, original)
        self._undo = []

    def busy(self) -> bool:
        """Returns whether a profiler runs, or is between its preparation and its end (its warm-up)."""
        return self._enabled() or len(self._prepared) > 0

    @contextlib.contextmanager
    def own(self) -> Iterator[None]:
        """Marks calls of profilers inside the block as the recording's, not the program's."""
        self._own = True
        try:
            yield
        finally:
            self._own = False

    def _replace(self, owner: Any, name: str, around: Callable) -> None:
        original = owner.__dict__.get(name)
        if original is None:
            return

        @functools.wraps(original)
        def ours(*args: Any, **kwargs: Any) -> Any:
            return around(original, *args, **kwargs)

        setattr(owner, name, ours)
        self._undo.append((owner, name, ours, original))

    def _step(self, original: Callable, *args: Any, **kwargs: Any) -> Any:
        self._before_step()
        result = original(*args, **kwargs)
        self._after_step()
        return result

    def _register(self, original: Callable, *args: Any, **kwargs: Any) -> Any:
        if not self._own:
            self._on_start()
        return original(*args, **kwargs)

    def _prepare(self, original: Callable, profile: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._own:
            self._on_start()
            self._prepared.add(profile)
        return original(profile, *args, **kwargs)

    def _exit(self, original: Callable, profile: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(profile, *args, **kwargs)
        finally:
            self._prepared.discard(profile)
