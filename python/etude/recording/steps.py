"""Finds the steps of a running program from marks of any kind."""

from __future__ import annotations

from threading import get_ident
from typing import Any, List, Optional, Tuple

from . import clock
from .clock import Reading
from .module_marks import ModuleMarks
from .optimizer_marks import OptimizerMarks
from .periods import PeriodFinder
from .profiler_marks import ProfilerMarks
from .signature import CallCollector

# Marks of a kind replace those of earlier kinds.
_ORDER = {"": 0, "module": 1, "profiler": 2, "optimizer": 3, "explicit": 4}
# Module calls without an optimizer step after which an existing optimizer counts as unused, and module calls without a
# profiler step after which the profiler counts as gone.
_CALLS_WITHOUT_MARK = 200
_NOTES_MAX = 50


class StepListener:
    """Receiver of a StepFinder's reports. An exception in a method is passed to `failed`."""

    def step_ended(self, units: Tuple[str, ...], calls: tuple, reading: Reading) -> None:
        """Reports the end of a step: its marks, and the calls of outermost modules with their inputs.

        `reading` was taken at its mark.
        """

    def step_begins(self) -> None:
        """Reports that the next step begins on return."""

    def steps_learnt(self, passed: int) -> None:
        """Reports that steps are identified; `passed` steps came before the current or ending one."""

    def steps_changed(self, why: str) -> None:
        """Reports that earlier steps were wrong; `steps_learnt` follows when steps are identified again."""

    def profiler_starts(self) -> None:
        """Reports that the program is about to start a profiler or an observer."""

    def failed(self, error: Exception) -> None:
        """Reports an internal error; no more steps follow."""


class StepFinder:
    """Observes the marks of one process and reports the steps between them to a listener.

    A step ends with one period of the sequence of optimizers; without optimizers with a `profiler.step()` of the
    program; without that with one period of the sequence of outermost module calls. `mark` is an explicit end and
    replaces all others. `allowed` is "auto" or the only kind (besides explicit) that counts. Marks and module calls of
    threads other than the first one are ignored and counted in `foreign_marks` and `foreign_calls`. `notes` describes
    anomalies.
    """

    def __init__(self, torch: Any, allowed: str, listener: StepListener) -> None:
        self.kind = ""
        self.notes: List[str] = []
        self.foreign_marks = 0
        self.foreign_calls = 0
        self.optimizers = OptimizerMarks(torch, self._optimizer_stepped)
        self.modules = ModuleMarks(torch, self._module_called)
        self.profilers = ProfilerMarks(
            torch,
            self._before_profiler_step,
            self._after_profiler_step,
            self._profiler_starts,
        )
        self._grad_enabled = torch.is_grad_enabled
        self._allowed = allowed
        self._listener = listener
        self._collector = CallCollector(torch.Tensor)
        self._finder = PeriodFinder()
        self._units: List[str] = []
        self._closed = False
        self._profiler_gone = False
        self._calls_since_mark = 0

    def attach(self) -> None:
        """Starts observing."""
        self.optimizers.attach()
        self.profilers.attach()
        self.modules.learn()
        if not self.optimizers.exact:
            self.note("step marks are inside the optimizer's range, because this torch offers no other place")

    def detach(self) -> None:
        """Stops observing and restores the original methods."""
        self._closed = True
        self.modules.detach()
        self.optimizers.detach()
        self.profilers.detach()

    def mark(self) -> None:
        """Marks an explicit end of a step."""
        self._mark("explicit", 0)

    def note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < _NOTES_MAX:
            self.notes.append(text)

    def pattern(self) -> Optional[List[str]]:
        """Returns the marks of one step in order; None while they are unknown."""
        if self.kind in ("explicit", "profiler"):
            return [self._label(self.kind, 0)]
        if self._finder.pattern is None:
            return None
        return [self._label(self.kind, unit) for unit in self._finder.pattern]

    def why_no_mark(self) -> str:
        """Returns known reasons for missing marks, as the end of a sentence; may be empty."""
        unused = self.optimizers.known() > 0 and not self.optimizers.labels
        no_module = ": no module was called"
        if self.modules.without_parameters():
            no_module = ": the modules that it called have no parameters"
        if self._allowed == "profiler":
            text = ": it did not call profiler.step()"
        elif self._allowed == "module":
            text = no_module
        elif unused:
            return ": there is an optimizer, but it never stepped"
        else:
            return no_module if self.modules.without_parameters() else ""
        if self.optimizers.labels:
            text += "; it has optimizer steps, which end steps by default"
        return text

    def may_grow(self) -> bool:
        """Returns whether later marks may change or extend steps."""
        if self.kind == "explicit" or self._allowed == "module":
            return False
        return self.kind == "module" or self.optimizers.waiting()

    # -- Marks of each kind ----------------------------------------------------------------------

    def _optimizer_stepped(self, unit: int) -> None:
        self._mark("optimizer", unit)

    def _module_called(self, unit: int, module: Any, args: tuple, kwargs: dict) -> None:
        if self._closed:
            return
        if self.modules.thread not in (None, get_ident()):
            self.foreign_calls += 1
            return
        try:
            label = self.modules.labels[unit]
            self._collector.add(label, module.training, self._grad_enabled(), args, kwargs)
            if self.kind == "module" or self._modules_may_mark():
                self._mark("module", unit)
        except Exception as error:
            self._fail(error)

    def _modules_may_mark(self) -> bool:
        """Returns whether module calls end steps although marks of a better kind are possible."""
        self._calls_since_mark += 1
        waited = self._calls_since_mark > _CALLS_WITHOUT_MARK
        if self.kind == "profiler" and waited:
            self._profiler_gone = True
            self._change_kind("", "the program stopped to call profiler.step()")
        if self.kind or not self._allows("module"):
            return False
        return waited or self._allowed == "module" or not self.optimizers.known()

    def _before_profiler_step(self) -> None:
        """Ends a step before the program's profiler changes its state; the next step begins after that."""
        reading = clock.end()
        if self.kind == "profiler" and self._accepts("profiler"):
            try:
                self._calls_since_mark = 0
                self._end(self._label("profiler", 0), reading)
            except Exception as error:
                self._fail(error)

    def _after_profiler_step(self) -> None:
        if self._profiler_gone:
            return
        if self.kind != "profiler":
            self._mark("profiler", 0)
        elif self._accepts("profiler"):
            try:
                self._listener.step_begins()
            except Exception as error:
                self._fail(error)

    def _profiler_starts(self) -> None:
        try:
            self._listener.profiler_starts()
        except Exception as error:
            self._fail(error)

    # -- From marks to steps ---------------------------------------------------------------------

    def _allows(self, kind: str) -> bool:
        return kind == "explicit" or self._allowed in ("auto", kind)

    def _accepts(self, kind: str) -> bool:
        """Returns whether a mark of this kind counts in this thread."""
        if self._closed or _ORDER[kind] < _ORDER[self.kind] or not self._allows(kind):
            return False
        thread = get_ident()
        if self.modules.thread is None:
            self.modules.thread = thread
        elif self.modules.thread != thread:
            self.foreign_marks += 1
            return False
        return True

    def _mark(self, kind: str, unit: int) -> None:
        # Read first, because the following work belongs to no step.
        reading = clock.end()
        if not self._accepts(kind):
            return
        try:
            if kind != self.kind:
                self._change_kind(kind, f"the program has {kind} marks")
            self._calls_since_mark = 0
            label = self._label(kind, unit)
            if kind in ("optimizer", "module") and not self._push(kind, unit):
                self._units.append(label)
                return
            self._end(label, reading)
            self._listener.step_begins()
        except Exception as error:
            self._fail(error)

    def _push(self, kind: str, unit: int) -> bool:
        finder = self._finder
        before = finder.pattern
        learning = before is None and kind == "optimizer"
        ended = finder.push(unit, self.optimizers.known() if learning else 0)
        if finder.pattern is not before:
            self._pattern_changed(before is not None, ended)
        return ended

    def _pattern_changed(self, was_known: bool, ended: bool) -> None:
        finder = self._finder
        if was_known:
            self._listener.steps_changed("the sequence of marks changed")
        if finder.pattern is None:
            self.modules.learn()
            return
        started = len(finder.pattern) if ended else finder.position
        self._units = [self._label(self.kind, unit) for unit in finder.pattern[: started - 1]]
        if not finder.fixed:
            self.note(
                "the marks have no fixed order: a step ends with each "
                + self._label(self.kind, finder.pattern[0])
            )
        self._listener.steps_learnt(max(0, finder.periods - (1 if ended else 0)))

    def _change_kind(self, kind: str, why: str) -> None:
        if self.kind:
            self._listener.steps_changed(why)
        self.modules.learn()
        self.kind = kind
        self._units = []
        self._finder = PeriodFinder()
        if kind in ("explicit", "profiler"):
            self._listener.steps_learnt(0)

    def _end(self, label: str, reading: Reading) -> None:
        # Module steps are distinguished by the calls of outermost modules; their marks would be redundant.
        units = () if self.kind == "module" else tuple(self._units) + (label,)
        self._units = []
        self._listener.step_ended(units, self._collector.take(), reading)

    def _label(self, kind: str, unit: int) -> str:
        if kind == "optimizer":
            return self.optimizers.labels[unit]
        if kind == "module":
            return self.modules.labels[unit]
        return {"profiler": "profiler.step", "explicit": "step"}[kind]

    def _fail(self, error: Exception) -> None:
        self._closed = True
        self._listener.failed(error)
