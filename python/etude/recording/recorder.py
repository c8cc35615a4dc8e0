"""Decides the use of each step of a program: warm-up, timing, recording, or none."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from itertools import accumulate
from time import perf_counter_ns
from typing import Any, Callable, List, Optional, Tuple

from . import clock, facts, files, job, recordings
from .capture import Capture, RecordedStep
from .clock import Reading
from .counted import counted
from .process_memory import StepMemory
from .settings import Settings
from .signature import Signature, SignatureTable
from .status import Status, suggest
from .early_capture import EarlyCapture
from .step_recording import Busy, RangesFailed
from .timing import TimedBlock
from .watcher import LEARNING_STEPS, RecordingWatcher

# Steps of other signatures that are recorded and dropped before any is accepted.
_ATTEMPTS_MAX = 8
# If signatures vary, timing continues after the recording until the recorded one has the requested number of steps, but
# for at most this multiple of the requested steps.
_TIMED_FACTOR = 4
# Share of the time that recorded kinds cover with `kinds="auto"`, and maximum of steps between them.
_COVERED = 0.9
_RECORDED_MAX = 64
# Minimum of timed steps; if more were requested, fewer result in a note.
_TIMED_LEAST = 3
# The step that is recorded early, and the minimum of --warmup for it: the last steps of the warm-up pass between it and
# the first timed one.
_EARLY_STEP = 2
_EARLY_WARMUP = 4
# After this time warm-up and timing need only three steps each.
_LONG_NS = 60_000_000_000
_LONG_LEAST = 3
# Steps after the complete capture in which a step may still turn out to be larger.
_WATCH_MAX = 5000


class Recorder(RecordingWatcher):
    """Observes one process, times its steps and records one of them (or a few in a row).

    Phases: "warmup" until enough steps have passed and steps can be identified; its third step is recorded early, for
    programs that end soon (`early_capture`); "timing" without observer and profiler; "recording" until a step of the
    most frequent signature is recorded; "timing-more" if the recorded signature has fewer timed steps than requested;
    "done". The capture is complete from the end of the recording on.

    Never raises into the program: an internal error ends the recording and is written to the status file. A forked
    child does nothing. Nothing is written to the folder before the first step mark, and nothing under a final name
    before it is complete. In a job of several ranks the step to record depends on the number of steps only, so that all
    ranks record the same one.
    """

    def __init__(
        self, torch: Any, settings: Settings, on_done: Optional[Callable[[], None]] = None
    ) -> None:
        self.settings = settings
        self.status = Status(settings.directory)
        self.complete = False
        super().__init__(torch, settings.kind)
        self._on_done = on_done
        self._capture = Capture(torch, settings)
        self._memory = StepMemory(self._finder)
        self._capture.memory = self._memory
        self._notes: List[str] = []
        self._candidate: Optional[RecordedStep] = None
        self._published: Optional[RecordedStep] = None
        self._early = EarlyCapture(self._capture)
        self._reset(0)

    @property
    def notes(self) -> List[str]:
        """Notes on the capture, once it is complete."""
        return list(self._capture.entry["notes"]) if self._capture.entry is not None else []

    @property
    def provisional(self) -> bool:
        """Whether the program ended before the capture was complete, but left an early one."""
        return not self.complete and self._capture.entry is not None

    def _reset(self, passed: int) -> None:
        """Begins a warm-up after `passed` steps."""
        self._drop_attempt()
        self._phase = "warmup"
        self._phase_step = passed
        self._steps_seen = passed
        self._learnt_at: Optional[int] = None
        self._start: Optional[Reading] = None
        self._table = SignatureTable()
        self._timed: Optional[TimedBlock] = None
        self._lockstep = False
        self._attempts = 0
        self._clean = True
        self._busy_reason: Optional[str] = None
        self._modes: Optional[dict] = None
        self._watched = 0
        self._early.reset()
        self._phase_began = perf_counter_ns()

    # -- Life ------------------------------------------------------------------------------------

    def close(self, ended_by: Optional[str] = None) -> None:
        """Called when the program, or the recorded block, ends; the recorder is inert afterwards.

        `ended_by` describes an irregular end.
        """
        if self._closed or os.getpid() != self._pid:
            return
        try:
            self._end_early(ended_by)
        except Exception as error:
            self.failed(error)
        if not self.complete:
            self._explain(ended_by)
        self._write_status()
        self._detach()
        files.remove_temporaries(self.settings.directory)

    def failed(self, error: Exception) -> None:
        code, text = "internal", f"{type(error).__name__}: {error}"
        if isinstance(error, job.RankTaken):
            code, text = "rank-taken", str(error)
        elif files.is_full(self.settings.directory, error):
            code, text = "disk-full", "the disk of the capture folder is full"
        self.status.set(code=code, reason=text)
        with contextlib.suppress(Exception):
            self._drop_attempt()
        self._phase = "done"
        with contextlib.suppress(Exception):
            self._write_status()
            self._detach()
            files.remove_temporaries(self.settings.directory)

    def _detach(self) -> None:
        self._closed = True
        self._finder.detach()
        if self._on_done is not None:
            self._on_done()

    def _end_early(self, ended_by: Optional[str]) -> None:
        """Publishes the existing recording and drops the rest."""
        self._drop_recording()
        if self._phase == "timing-more":
            self._put_entry()
        elif self._phase == "recording" and self._candidate is not None:
            self._publish()
        elif not self.complete and self._early.recorded is not None:
            how = f" ({ended_by})" if ended_by else ""
            self._put_early(f"the program ended after {counted(self._steps_seen, 'step')}{how}")
        elif self._capture.entry is not None and self._phase != "done":
            self._capture.add_note(
                "steps changed later in the program, which ended before such a step was recorded"
            )

    # -- Steps -----------------------------------------------------------------------------------

    def attach(self) -> None:
        super().attach()
        self._memory.watch()

    def steps_learnt(self, passed: int) -> None:
        self._memory.stop()
        self._steps_seen = max(self._steps_seen, passed)
        self._learnt_at = self._steps_seen + 1
        self._start = None

    def steps_changed(self, why: str) -> None:
        if self._phase != "warmup" or self._steps_seen > 1:
            self._note(f"after {counted(self._steps_seen, 'step')} {why}: warm-up and timing began again")
        self._reset(0)

    def profiler_starts(self) -> None:
        self._clean = False
        if self._recording is not None:
            self._drop_recording()
            self._busy_reason = "the program started a profiler of its own"

    def step_ended(self, units: Tuple[str, ...], calls: tuple, reading: Reading) -> None:
        index = self._steps_seen
        self._steps_seen += 1
        # The begin of the first step is unknown.
        if self._start is None or self._phase == "done":
            return
        signature = self._table.see(units, calls)
        passed = reading.since(self._start)
        if self._recording is not None:
            self._end_recorded(index, signature, passed)
        elif self._phase == "warmup":
            if self._clean and not self._finder.profilers.busy():
                self._early.add(index, signature, passed)
                self._memory.step_ended()
        elif self._phase in ("timing", "timing-more"):
            self._end_timed(index, signature, passed)

    def step_begins(self) -> None:
        """Does slow work between the clock readings of two steps."""
        if self._phase == "warmup":
            self._warm_up()
        if self._phase in ("warmup", "timing") and self._early.wants_update():
            self._put_early(f"the program was at step {self._steps_seen} when this was written")
        if self._phase == "timing" and self._timing_is_over():
            self._timed.end(self._steps_seen - self._phase_step)
            self._set_phase("recording")
        if self._phase == "recording" and self._recording is None:
            self._try_recording()
        if self._phase == "timing-more" and self._more_timing_is_over():
            self._put_entry()
            self._finish()
        if self._phase == "done":
            self._watch()
            return
        self._clean = not self._finder.profilers.busy()
        self._start = clock.begin()

    def _warm_up(self) -> None:
        if self._steps_seen <= 1:
            self._write_status()
        if self._steps_seen == self._phase_step + LEARNING_STEPS:
            self._finder.modules.settle()
        if self._early_is_due():
            self._finder.modules.settle()
            self._try_recording()
        elif self._warm_up_is_over():
            self._finder.modules.settle()
            self._lockstep = job.rank_and_world(self._torch)[1] > 1
            self._set_phase("timing")
            self._timed = TimedBlock(self._torch, self._steps_seen)

    def _warm_up_is_over(self) -> bool:
        passed = self._steps_seen - self._phase_step
        # A step passes after the early one.
        if self._early.tried and self._steps_seen <= self._recording_first + 1:
            return False
        return passed >= max(1, self.settings.warmup) or (passed >= _LONG_LEAST and self._is_long())

    def _early_is_due(self) -> bool:
        return (
            not self._early.tried
            and self._learnt_at is not None
            and self.settings.warmup >= _EARLY_WARMUP
            and self._steps_seen - self._phase_step >= _EARLY_STEP
        )

    def _is_long(self) -> bool:
        """Returns whether the phase has taken long enough. Always False with several ranks, whose clocks differ."""
        if job.rank_and_world(self._torch)[1] > 1:
            return False
        return perf_counter_ns() - self._phase_began >= _LONG_NS

    def _set_phase(self, phase: str) -> None:
        self._phase = phase
        self._phase_began = perf_counter_ns()
        self._phase_step = self._steps_seen
        self._write_status()

    # -- Timing ----------------------------------------------------------------------------------

    def _end_timed(self, index: int, signature: Signature, passed: Reading) -> None:
        if self._clean and not self._finder.profilers.busy():
            self._timed.add(index, signature, passed)
            if self._phase == "timing":
                self._memory.step_ended()
            signature.times.append(passed.wall_ns)
        else:
            self._busy_reason = "a profiler of the program was running"

    def _timing_is_over(self) -> bool:
        wanted = self.settings.steps
        if self._lockstep:
            return self._steps_seen - self._phase_step >= wanted and len(self._timed) > 0
        timed = len(self._timed)
        return timed >= wanted or (timed >= _LONG_LEAST and self._is_long())

    def _more_timing_is_over(self) -> bool:
        passed = self._steps_seen - self._phase_step
        if passed >= _TIMED_FACTOR * self.settings.steps:
            return True
        return self._timed_enough() or (passed >= _LONG_LEAST and self._is_long())

    def _timed_enough(self) -> bool:
        """Returns whether the recorded signature has enough timed steps."""
        wanted = min(self.settings.steps, max(len(self._timed), _LONG_LEAST))
        return self._published.signature.timed >= wanted

    def _wanted_kinds(self) -> List[Signature]:
        """Returns the signatures to record, by time, descending."""
        wanted = self._table.by_time()
        if self.settings.kinds != "auto":
            return wanted[: self.settings.kinds]
        least = _COVERED * sum(signature.typical_ns for signature in wanted)
        for count, passed in enumerate(accumulate(one.typical_ns for one in wanted), start=1):
            if passed >= least:
                return wanted[:count]
        return wanted

    def _recorded_enough(self, steps: int) -> bool:
        """Returns whether the recording may end after `steps` steps. With several ranks this depends on the number
        only.
        """
        if steps < self.settings.record_steps:
            return False
        if self.settings.kinds == 1 or steps >= _RECORDED_MAX:
            return True
        if self._lockstep:
            return steps >= self.settings.steps
        return {one.id for one in self._wanted_kinds()} <= set(self._recorded_ids)

    # -- Recording -------------------------------------------------------------------------------

    def _try_recording(self) -> None:
        """Starts a recording with the next step, if no other recording is active."""
        if self._finder.profilers.busy():
            self._busy_reason = "a profiler of the program was running"
            return
        early = self._phase == "warmup"
        rank, world = job.rank_and_world(self._torch)
        files.check_writable(self.settings.directory)
        job.check_free(self.settings, rank, world)
        made = recordings.make(
            self._torch,
            self.settings,
            files.temporary(self.settings.directory, "early" if early else str(self._attempts)),
            finder=self._finder,
            # Profiling devices may slow down the program from then on, so it comes after the timing.
            devices=not early,
        )
        for note in made.notes:
            self._note(note)
        self._profiled = self._profiled or made.profiled
        self._recording = made.recording
        self._early.tried = True
        self._recording_first = self._steps_seen
        with self._finder.profilers.own():
            try:
                made.recording.start(self._steps_seen)
            except Busy as error:
                self._busy_reason = str(error)
                self._drop_recording()
                return
        self._recording_start = clock.begin()
        self._recorded_ids: List[str] = []
        self._modes = None
        self._finder.modules.on_enter = self._take_modes

    def _take_modes(self, module: Any) -> None:
        if self._modes is None:
            self._modes = facts.modes(self._torch)

    def _end_recorded(self, index: int, signature: Signature, passed: Reading) -> None:
        recording = self._recording
        steps = index + 1 - self._recording_first
        early = self._phase == "warmup"
        self._recorded_ids.append(signature.id)
        if not early and not self._recorded_enough(steps):
            recording.next_step(index + 1)
            return
        if steps > 1:
            signature = self._most_time(self._recorded_ids)
        if steps > 1:
            passed = clock.end().since(self._recording_start)
        self._finder.modules.on_enter = None
        with self._finder.profilers.own():
            try:
                recording.stop()
            except RangesFailed:
                self._drop_recording()
                self._note("cannot read integer inputs: the step has no ranges")
                self.settings = dataclasses.replace(self.settings, ranges="off")
                return
        self._recording = None
        found = {
            "signature": signature.id,
            "index": self._recording_first,
            "steps": steps,
            "signatures": self._recorded_ids,
            **passed.to_json(),
            "integer_ranges": recording.ranges,
            "modes": self._modes,
        }
        found = {name: value for name, value in found.items() if value is not None}
        step = RecordedStep(recording, signature, found)
        if early:
            self._early.take(step)
        else:
            self._take(step)

    def _take(self, new: RecordedStep) -> None:
        """Keeps the better of two recorded steps; publishes if waiting will not help."""
        self._attempts += 1
        old = self._candidate
        if old is not None and new.signature.typical_ns <= old.signature.typical_ns:
            new.recording.discard()
        else:
            self._candidate = new
            if old is not None:
                old.recording.discard()
        by_time = self._table.by_time()
        best = not by_time or self._candidate.signature.typical_ns >= by_time[0].typical_ns
        several = self.settings.kinds != 1
        if best or several or self._lockstep or self._attempts >= _ATTEMPTS_MAX:
            self._publish()

    def _most_time(self, ids: List[str]) -> Signature:
        """Returns the recorded signature with the most time; the first one of equal ones."""
        recorded = [one for one in self._table.all() if one.id in ids]
        return max(recorded, key=lambda one: one.typical_ns)

    def _drop_recording(self) -> None:
        if self._recording is not None:
            self._recording.discard()
            self._recording = None

    def _drop_attempt(self) -> None:
        self._drop_recording()
        if self._candidate is not None:
            self._candidate.recording.discard()
            self._candidate = None

    def _put_early(self, when: str) -> None:
        self._early.put(when, self._finder, self._table, self._timed, self._steps_seen, self._notes)

    # -- Results ---------------------------------------------------------------------------------

    def _publish(self) -> None:
        step = self._candidate
        self._candidate = None
        self._early.drop()
        for note in self._capture.put_files(step):
            self._note(note)
        self._published = step
        self._put_entry()
        self.complete = True
        if self._timed_enough():
            self._finish()
        else:
            self._set_phase("timing-more")

    def _put_entry(self) -> None:
        notes = list(self._notes)
        timed = self._published.signature.timed
        if timed == 0:
            notes.append(
                "no timed step has the signature of the recorded step: times of the original are those of all timed steps"
            )
        elif timed < min(_TIMED_LEAST, self.settings.steps):
            notes.append(
                f"only {timed} of {self.settings.steps} requested steps with the recorded signature "
                "were timed: their median is unreliable"
            )
        self._capture.put_entry(
            self._published, self._finder, self._table, self._timed, self._steps_seen, notes
        )

    def _finish(self) -> None:
        """Completes the capture. Continues to observe only if a step may still turn out to be larger."""
        self._set_phase("done")
        if self._finder.may_grow():
            self._finder.modules.detach()
        else:
            self._detach()

    def _watch(self) -> None:
        """Handles a mark after the capture is complete; see `_finish`."""
        self._watched += 1
        if self._watched > _WATCH_MAX or not self._finder.may_grow():
            self._detach()

    # -- Status ----------------------------------------------------------------------------------

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _write_status(self) -> None:
        rank, world = job.rank_and_world(self._torch)
        self.status.set(
            complete=self.complete,
            phase=self._phase,
            step_kind=self._finder.kind or None,
            steps_seen=self._steps_seen,
            timed=len(self._timed) if self._timed is not None else 0,
            rank=rank,
            world_size=world,
            warmup=self.settings.warmup,
            steps=self.settings.steps,
            record_steps=self.settings.record_steps,
        )
        self.status.write()

    def _explain(self, ended_by: Optional[str]) -> None:
        """Sets the reason for a missing capture, as a code and as text."""
        if self.status.get("code"):
            return
        settings = self.settings
        seen = self._steps_seen
        suggestion = None
        if not self._finder.kind:
            code, reason = "no-step", "the program used torch, but no step was found"
            reason += self._finder.why_no_mark()
        elif self._busy_reason is not None:
            code, reason = "busy", f"{self._busy_reason} and no step remained to record"
        else:
            code = "ended-early"
            needed = max(1, settings.warmup) + settings.steps + settings.record_steps
            reason = f"the program ended after {counted(seen, 'step')}, but {needed} are required"
            suggestion = suggest(
                seen, self._learnt_at or 1, settings.warmup, settings.steps, settings.record_steps
            )
        if ended_by:
            reason += f" ({ended_by})"
        self.status.set(code=code, reason=reason, suggest=suggestion)
