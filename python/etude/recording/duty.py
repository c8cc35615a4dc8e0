"""Records a running program repeatedly: at step intervals, and on a signal."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import threading
import time
from typing import Any, Callable, List, Optional, Tuple

from . import clock, files, job, recordings
from .capture import Capture, RecordedStep
from .clock import Reading
from .duty_folder import DutyFolder
from .duty_settings import DutySettings
from .settings import Settings
from .signature import Signature, SignatureTable
from .step_recording import Busy, RangesFailed
from .timing import PlainSteps
from .watcher import LEARNING_STEPS, RecordingWatcher

# In a job of several ranks a signal is answered at a step whose number is a multiple of this, at most two such steps
# later. By then each rank has read the request, unless it is that many steps ahead.
_REQUEST_STRIDE = 8


class Duty(RecordingWatcher):
    """Observes one process during its lifetime, and makes recordings of it.

    Between recordings it only counts steps and keeps the times of the last ones. An error ends the recordings, is
    reported once on stderr, and does not affect the program. The recorded steps depend on step numbers only, so that
    all ranks of a job record the same ones.
    """

    def __init__(
        self, torch: Any, duty: DutySettings, settings: Settings, on_done: Callable[[], None]
    ) -> None:
        super().__init__(torch, duty.kind)
        self._duty = duty
        self._settings = settings
        self._on_done = on_done
        self._folder: Optional[DutyFolder] = None
        self._signal = SignalFlag(duty.signal)
        self._table = SignatureTable()
        self._recent = PlainSteps(settings.steps)
        self._began: Optional[float] = None  # time of the first step mark
        self._written = 0
        self._step = 0  # current or next step
        self._settle_at = LEARNING_STEPS
        self._start: Optional[Reading] = None
        self._first: Optional[int] = None  # first step of the current recording
        self._capture: Optional[Capture] = None
        self._notes: List[str] = []
        self._clean = True
        self._said_lost = False

    # -- Life ------------------------------------------------------------------------------------

    def close(self, ended_by: Optional[str] = None) -> None:
        """Called at the program's end."""
        if not self._closed and os.getpid() == self._pid:
            self._end()

    def failed(self, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, job.RankTaken):
            text = str(error)
        elif files.is_full(self._duty.directory, error):
            text = f"{self._duty.directory}: the disk is full"
        self._stop(text)

    def _stop(self, why: str) -> None:
        """Ends recordings of this run on all ranks."""
        if self._closed:
            return
        say(f"no more recordings: {why}")
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.stop()
        self._end()

    def _end(self) -> None:
        self._closed = True
        with contextlib.suppress(Exception):
            self._discard()
        with contextlib.suppress(Exception):
            self._finder.detach()
        self._signal.remove()
        self._on_done()

    def _cut_off_child(self) -> None:
        super()._cut_off_child()
        self._signal.remove()

    # -- Steps -----------------------------------------------------------------------------------

    def steps_learnt(self, passed: int) -> None:
        self._step = max(self._step, passed)
        self._start = None

    def steps_changed(self, why: str) -> None:
        self._discard()
        self._recent.clear()
        self._start = None
        self._settle_at = self._step + LEARNING_STEPS

    def profiler_starts(self) -> None:
        self._clean = False
        self._discard()

    def step_ended(self, units: Tuple[str, ...], calls: tuple, reading: Reading) -> None:
        index = self._step
        self._step += 1
        if self._closed or self._start is None:
            return
        signature = self._table.see(units, calls)
        passed = reading.since(self._start)
        if self._recording is not None:
            self._end_recorded(index, signature, passed)
        elif self._clean and not self._finder.profilers.busy():
            self._recent.add(index, signature, passed)

    def step_begins(self) -> None:
        """Does slow work between the clock readings of two steps."""
        if self._closed:
            return
        if self._began is None:
            self._began = time.monotonic()
            self._signal.install()
        if self._step >= self._settle_at:
            self._finder.modules.settle()
        if self._recording is None and self._step > 1 and self._is_due() and not self._is_over():
            self._begin()
        if self._closed:
            return
        self._clean = not self._finder.profilers.busy()
        self._start = clock.begin()

    def _is_due(self) -> bool:
        due = self._duty.every > 0 and self._step % self._duty.every == 0
        if self._duty.signal is None:
            return due
        if job.rank_and_world(self._torch)[1] == 1:
            return self._signal.is_set or due
        return self._is_requested() or due

    def _is_requested(self) -> bool:
        """Returns whether any rank got the signal, and publishes this rank's."""
        if self._signal.take():
            self._open_folder().request((self._step // _REQUEST_STRIDE + 2) * _REQUEST_STRIDE)
        at_stride = self._step % _REQUEST_STRIDE == 0
        return at_stride and self._open_folder().is_requested(self._step)

    def _is_over(self) -> bool:
        duty = self._duty
        if duty.max_seconds is not None and time.monotonic() - self._began > duty.max_seconds:
            self._stop(f"max_seconds={duty.max_seconds} reached")
        elif duty.max_bytes is not None and self._written >= duty.max_bytes:
            self._stop(f"{self._written} bytes were written, max_bytes={duty.max_bytes}")
        elif self._open_folder().is_stopped():
            self._end()
        return self._closed

    # -- Recordings ------------------------------------------------------------------------------

    def _open_folder(self) -> DutyFolder:
        if self._folder is None:
            self._folder = DutyFolder(self._duty.directory, self._duty.keep)
        return self._folder

    def _begin(self) -> None:
        """Starts a recording with the next step, unless another recording is active."""
        if self._finder.profilers.busy():
            return
        folder = self._open_folder()
        self._first = self._step
        hidden, lost = folder.open(self._step)
        if lost and not self._said_lost:
            self._said_lost = True
            say(f"removed the recording of step {lost[0]} because ranks are missing")
        settings = dataclasses.replace(self._settings, directory=hidden)
        job.check_free(settings, *job.rank_and_world(self._torch))
        made = recordings.make(
            self._torch,
            settings,
            files.temporary(hidden, "recording"),
            finder=self._finder,
            most_bytes=self._bytes_left(),
        )
        self._notes = made.notes
        self._profiled = self._profiled or made.profiled
        self._capture = Capture(self._torch, settings)
        self._recording = made.recording
        self._recorded_ids: List[str] = []
        with self._finder.profilers.own():
            try:
                made.recording.start(self._step)
            except Busy:
                self._discard()
                return
        if job.rank_and_world(self._torch)[1] == 1:
            self._signal.take()  # answered; with several ranks the answer comes later

    def _bytes_left(self) -> Optional[int]:
        if self._duty.max_bytes is None:
            return None
        return self._duty.max_bytes - self._written

    def _end_recorded(self, index: int, signature: Signature, passed: Reading) -> None:
        recording = self._recording
        steps = index + 1 - self._first
        self._recorded_ids.append(signature.id)
        if steps < self._duty.steps:
            recording.next_step(index + 1)
            return
        with self._finder.profilers.own():
            try:
                recording.stop()
            except RangesFailed:
                say("cannot read integer inputs: later steps are recorded without ranges")
                self._settings = dataclasses.replace(self._settings, ranges="off")
                self._discard()
                return
        self._recording = None
        found = {
            "signature": signature.id,
            "index": self._first,
            "steps": steps,
            "signatures": self._recorded_ids,
            "integer_ranges": recording.ranges,
        }
        if steps == 1:
            found.update(passed.to_json())
        self._publish(RecordedStep(recording, signature, found))

    def _publish(self, step: RecordedStep) -> None:
        notes = self._notes + self._capture.put_files(step)
        for name in step.files.values():
            self._written += os.path.getsize(os.path.join(self._capture.directory, name))
        self._recent.count(self._table)
        self._capture.put_entry(step, self._finder, self._table, self._recent, self._step, notes)
        self._folder.publish(self._first)
        self._first = None

    def _discard(self) -> None:
        """Ends the current recording, if there is one, and removes its files."""
        if self._first is None:
            return
        recording, self._recording = self._recording, None
        first, self._first = self._first, None
        if recording is not None:
            with self._finder.profilers.own():
                recording.discard()
        self._folder.discard(first)


class SignalFlag:
    """A flag that a signal sets after the first `install`; the program's own handler runs as well."""

    def __init__(self, number: Optional[int]) -> None:
        self.is_set = False
        self._number = number
        self._handler: Any = None
        self._before: Any = None

    def install(self) -> None:
        """Installs a handler that chains to the program's. Main thread only."""
        if self._number is None or self._handler is not None:
            return
        if threading.current_thread() is not threading.main_thread():
            say("the steps do not run in the main thread, so signals do not arrive")
            self._number = None
            return
        before = signal.getsignal(self._number)

        def handler(number: int, frame: Any) -> None:
            self.is_set = True
            if callable(before):
                before(number, frame)

        self._before = before
        self._handler = handler
        signal.signal(self._number, handler)

    def remove(self) -> None:
        """Restores the program's handler, if ours is still installed."""
        if self._handler is None or signal.getsignal(self._number) is not self._handler:
            return
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(self._number, self._before if self._before is not None else signal.SIG_DFL)

    def take(self) -> bool:
        """Returns whether the flag is set, and clears it."""
        was, self.is_set = self.is_set, False
        return was


def say(text: str) -> None:
    """Prints one line to stderr, if the program has one."""
    with contextlib.suppress(Exception):
        print(f"etude: ETUDE_RECORD: {text}", file=sys.stderr, flush=True)
