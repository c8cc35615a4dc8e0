"""Times steps without observer and profiler: two readings at each step mark."""

from __future__ import annotations

from collections import deque
from typing import Any, Deque, Dict, List

from . import clock
from .clock import Reading
from .signature import Signature, SignatureTable
from .step_recording import uses_cuda


class TimedBlock:
    """Consecutive steps and their times.

    All readings (`clock`) are between step marks on the host. On CUDA the devices are synchronised at the begin and the
    end of the block only: the host runs ahead as without a recording, and an event at each mark measures the time
    between marks on the device. `first` is the index of the first step.
    """

    def __init__(self, torch: Any, first: int) -> None:
        self._torch = torch
        self._first = first
        self._steps: List[tuple] = []
        self._block: Dict[str, int] = {}
        self._events = uses_cuda(torch)
        if self._events:
            torch.cuda.synchronize()
        self._first_event = self._event() if self._events else None
        self._started = clock.begin()

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, index: int, signature: Signature, passed: Reading) -> None:
        """Adds a step that has just ended; `passed` is its reading."""
        event = self._event() if self._events else None
        signature.timed += 1
        self._steps.append((index, signature, passed, event))

    def end(self, steps: int) -> None:
        """Ends the block, in which `steps` steps ran (including steps that were not added)."""
        if self._events:
            self._torch.cuda.synchronize()
        self._block = {"steps": steps, **clock.end().since(self._started).to_json()}

    def block_json(self) -> dict:
        """Returns steps, wall and CPU nanoseconds of the whole block."""
        return dict(self._block)

    def steps_json(self) -> List[dict]:
        """Returns one entry per step; `device_ns` if known."""
        found = []
        before, last = self._first_event, self._first - 1
        for index, signature, passed, event in self._steps:
            step = {"signature": signature.id, "index": index, **passed.to_json()}
            if event is not None and index == last + 1:
                step["device_ns"] = round(before.elapsed_time(event) * 1e6)
            before, last = event, index
            found.append(step)
        return found

    def _event(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event


class PlainSteps:
    """The last `most` unrecorded steps, and their times between step marks on the host.

    Used like TimedBlock for continuous timing: nothing is synchronised, and the block is the sum of its steps.
    """

    def __init__(self, most: int) -> None:
        self._steps: Deque[tuple] = deque(maxlen=most)

    def add(self, index: int, signature: Signature, passed: Reading) -> None:
        """Adds a step that has just ended; `passed` is its reading."""
        self._steps.append((index, signature, passed))

    def clear(self) -> None:
        self._steps.clear()

    def count(self, table: SignatureTable) -> None:
        """Sets the number of timed steps of each signature."""
        for signature in table.all():
            signature.timed = 0
        for _, signature, _ in self._steps:
            signature.timed += 1

    def block_json(self) -> dict:
        total = Reading(0, 0, 0, 0, 0)
        for _, _, passed in self._steps:
            total = total.plus(passed)
        return {"steps": len(self._steps), **total.to_json()}

    def steps_json(self) -> List[dict]:
        return [
            {"signature": signature.id, "index": index, **passed.to_json()}
            for index, signature, passed in self._steps
        ]
