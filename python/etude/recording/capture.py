"""Writes a recorded step as files of the capture folder."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Union

from . import facts, heap, job
from .counted import counted
from .native_recording import NativeRecording
from .process_memory import StepMemory
from .settings import Settings
from .signature import Signature, SignatureTable
from .step_recording import StepRecording
from .steps import StepFinder
from .timing import PlainSteps, TimedBlock


@dataclass
class RecordedStep:
    """A recorded step with temporary file names; `facts` is written to job.json.

    `files` are the final names, once assigned.
    """

    recording: Union[StepRecording, NativeRecording]
    signature: Signature
    facts: dict
    files: Dict[str, str] = field(default_factory=dict)


class Capture:
    """This process's part of the capture folder. Raises job.RankTaken and OSError.

    `memory`: memory added by steps, if observed.
    """

    def __init__(self, torch: Any, settings: Settings) -> None:
        self.entry: Optional[dict] = None
        self.memory: Optional[StepMemory] = None
        self._torch = torch
        self._settings = settings

    @property
    def directory(self) -> str:
        return self._settings.directory

    def put_files(self, step: RecordedStep) -> List[str]:
        """Renames the trace files of a recorded step to their final names; returns notes."""
        directory = self._settings.directory
        rank, world = job.rank_and_world(self._torch)
        job.check_free(self._settings, rank, world)
        published = step.recording.publish(directory, rank)
        step.facts.update(published.facts)
        step.files = published.files
        return published.notes

    def put_entry(
        self,
        step: RecordedStep,
        finder: StepFinder,
        table: SignatureTable,
        timed: Union[TimedBlock, PlainSteps],
        steps_seen: int,
        notes: List[str],
    ) -> None:
        """Writes or replaces the entry of this process in job.json."""
        rank, world = job.rank_and_world(self._torch)
        notes = finder.notes + notes + facts.compiler_notes() + job.mark_notes(self._settings)
        if finder.foreign_marks:
            notes = notes + [
                counted(finder.foreign_marks, "step mark of another thread was", "step marks of other threads were")
                + " ignored"
            ]
        if finder.foreign_calls:
            notes = notes + [
                counted(
                    finder.foreign_calls,
                    "call of a module on another thread was not counted as a step",
                    "calls of modules on other threads were not counted as steps",
                )
                + ": work on these threads during the recorded step is part of the recording"
            ]
        timed_steps = timed.steps_json()
        counts = Counter(one["signature"] for one in timed_steps)
        for signature in table.all():
            signature.recorded = signature.id in step.facts["signatures"]
        notes = notes + _share_notes(step, table, timed_steps)
        entry = {
            "pid": os.getpid(),
            **step.files,
            "step_kind": finder.kind,
            "step_pattern": finder.pattern(),
            "steps_seen": steps_seen,
            "signatures": [
                {**signature, "timed": counts[signature["id"]]} for signature in table.to_json()
            ],
            "timed_steps": timed_steps,
            "timed_block": timed.block_json(),
            "recorded_step": step.facts,
            "threads": facts.threads(self._torch),
            "state": facts.state(self._torch),
            "heap": heap.facts(),
            "memory": self.memory.to_json() if self.memory is not None else None,
            "compiled_kernels": facts.has_compiled_kernels() or None,
            "notes": notes,
        }
        self.entry = {name: value for name, value in entry.items() if value is not None}
        job.publish(self._settings, self._torch, rank, world, self.entry)

    def add_note(self, note: str) -> None:
        """Adds a note to the existing entry."""
        rank, world = job.rank_and_world(self._torch)
        self.entry["notes"] = self.entry["notes"] + [note]
        job.publish(self._settings, self._torch, rank, world, self.entry)


def _share_notes(step: RecordedStep, table: SignatureTable, timed_steps: List[dict]) -> List[str]:
    """Returns notes on the share of the recorded kinds of steps, if the program has others."""
    kinds = table.all()
    recorded = set(step.facts["signatures"])
    if len(recorded) == len(kinds):
        return []
    seen = sum(kind.seen for kind in kinds if kind.id in recorded)
    all_seen = sum(kind.seen for kind in kinds)
    time = sum(one["wall_ns"] for one in timed_steps if one["signature"] in recorded)
    all_time = sum(one["wall_ns"] for one in timed_steps)
    what = "the recorded kind is" if len(recorded) == 1 else f"the {len(recorded)} recorded kinds are"
    share = f" and {100 * time / all_time:.1f} % of the time of those timed" if all_time else ""
    return [f"{what} {seen} of {counted(all_seen, 'step')}{share}; {len(kinds)} kinds of steps were seen"]
