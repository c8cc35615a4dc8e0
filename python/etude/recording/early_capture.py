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

# The interval between updates of job.json is this multiple of an update's duration, but at least a second.
_UPDATE_FACTOR = 200
_UPDATE_LEAST_NS = 1_000_000_000
# Number of timed steps after the warm-up that makes those of the warm-up unnecessary.
_WARM_ENOUGH = 3


class EarlyCapture:
    """The step that was recorded early, and the step times known so far.

    A native recording is written to the folder immediately, and job.json is updated from time to time, so that the
    capture survives a kill. The files of PyTorch's observers are slow to complete, so this happens at the program's
    end.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.reset()

    def reset(self) -> None:
        """Resets the state; files in the folder stay until they are replaced."""
        self.drop()
        self.tried = False
        self._cold: List[tuple] = []
        self._update_at = 0

    def add(self, index: int, signature: Signature, passed: Any) -> None:
        """Adds a step of the warm-up that has just ended."""
        self._cold.append((index, signature, passed))

    def take(self, step: RecordedStep) -> None:
        """Keeps the recorded step."""
        self.recorded = step

    def drop(self) -> None:
        """Drops the step, which is no longer needed."""
        step = getattr(self, "recorded", None)
        if step is not None and not step.files:
            step.recording.discard()
        self.recorded: Optional[RecordedStep] = None

    def wants_update(self) -> bool:
        """Returns whether to update job.json now, between two steps."""
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
        """Writes the known facts to the folder; `when` is a clause with the point in the program."""
        began = perf_counter_ns()
        step = self.recorded
        if not step.files:
            notes = notes + self._capture.put_files(step)
        times = _Times(step.signature, self._cold, timed)
        step.facts["early"] = True
        timed_of_kind = sum(one["signature"] == step.signature.id for one in times.steps_json())
        what = (
            f"recorded early, during warm-up, because {when}. Step {step.facts['index']} is recorded, and "
            + counted(timed_of_kind, "step of its kind was", "steps of its kind were")
            + " timed"
            + (", also in the warm-up" if times.cold and timed_of_kind else "")
        )
        self._capture.put_entry(step, finder, table, times, steps_seen, notes + [what])
        now = perf_counter_ns()
        self._update_at = now + max(_UPDATE_LEAST_NS, _UPDATE_FACTOR * (now - began))


class _Times:
    """Step times for Capture.put_entry: those of the warm-up are included while there are few others."""

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
