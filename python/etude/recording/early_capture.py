"""A capture of one of the first steps, for programs that end before a better one is complete."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, Dict, List, Optional

from .capture import Capture, RecordedStep
from .counted import counted
from .native_recording import NativeRecording
from .signature import Signature, SignatureTable
from .steps import StepFinder
from .timing import TimedBlock

# An update of job.json is repeated after that many times what it took, and not before a second has passed.
_UPDATE_FACTOR = 200
_UPDATE_LEAST_NS = 1_000_000_000
# Timed steps from behind the warm-up that are enough to leave out those of the warm-up.
_WARM_ENOUGH = 3


class EarlyCapture:
    """The step that was recorded early, and the times of steps that are known so far.

    What the native recorder has recorded is put into the folder at once, and job.json is updated from
    time to time, so that it is there even if the program is killed. The files of PyTorch's observers
    take long to finish: that is left to the end of the program.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.reset()

    def reset(self) -> None:
        """Forgets all; what is in the folder stays until something takes its place."""
        self.drop()
        self.tried = False
        self._cold: List[tuple] = []
        self._update_at = 0

    def add(self, index: int, signature: Signature, passed: Any) -> None:
        """Adds a step of the warm-up that ended just now."""
        self._cold.append((index, signature, passed))

    def take(self, step: RecordedStep) -> None:
        """Keeps the recorded step."""
        self.recorded = step

    def drop(self) -> None:
        """The step is not needed any more."""
        step = getattr(self, "recorded", None)
        if step is not None and not step.files:
            step.recording.discard()
        self.recorded: Optional[RecordedStep] = None

    def wants_update(self) -> bool:
        """Whether job.json is to be written now, between two steps."""
        return (
            self.recorded is not None
            and isinstance(self.recorded.recording, NativeRecording)
            and perf_counter_ns() >= self._update_at
        )

    def put(
        self,
        when: str,
        finder: StepFinder,
        table: SignatureTable,
        timed: Optional[TimedBlock],
        steps_seen: int,
        notes: List[str],
    ) -> None:
        """Writes what is known into the folder; `when` says at which point of the program, a clause."""
        began = perf_counter_ns()
        step = self.recorded
        if not step.files:
            notes = notes + self._capture.put_files(step)
        times = _Times(step.signature, self._cold, timed)
        step.facts["early"] = True
        timed_of_kind = sum(one["signature"] == step.signature.id for one in times.steps_json())
        what = (
            f"recorded early, in the warm-up: {when}. Step {step.facts['index']} is recorded, and "
            + counted(timed_of_kind, "step of its kind was", "steps of its kind were")
            + " timed"
            + (", also in the warm-up" if times.cold and timed_of_kind else "")
        )
        self._capture.put_entry(step, finder, table, times, steps_seen, notes + [what])
        now = perf_counter_ns()
        self._update_at = now + max(_UPDATE_LEAST_NS, _UPDATE_FACTOR * (now - began))


class _Times:
    """Times of steps as Capture.put_entry takes them: those of the warm-up, too, while others are few."""

    def __init__(
        self, signature: Signature, cold: List[tuple], timed: Optional[TimedBlock]
    ) -> None:
        warm = timed.steps_json() if timed is not None else []
        enough = sum(step["signature"] == signature.id for step in warm) >= _WARM_ENOUGH
        self.cold = bool(cold) and not enough
        self._steps = warm
        if self.cold:
            self._steps = [
                {"signature": kind.id, "index": index, **passed.to_json()}
                for index, kind, passed in cold
            ] + warm

    def steps_json(self) -> List[dict]:
        return self._steps

    def block_json(self) -> Optional[Dict[str, int]]:
        return None
