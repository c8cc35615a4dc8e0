"""Turns a recorded step into the files of the capture folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, List, Optional

from . import device_trace, facts, files, host_trace, job
from .settings import Settings
from .signature import Signature, SignatureTable
from .step_recording import StepRecording
from .steps import StepFinder
from .timing import TimedBlock


@dataclass
class RecordedStep:
    """A recorded step whose files still have temporary names. `facts` goes into job.json."""

    recording: StepRecording
    signature: Signature
    facts: dict


class Capture:
    """What this process has put into the capture folder. Raises job.RankTaken and OSError."""

    def __init__(self, torch: Any, settings: Settings) -> None:
        self.entry: Optional[dict] = None
        self._torch = torch
        self._settings = settings

    def put_files(self, step: RecordedStep) -> List[str]:
        """Gives the trace files of a recorded step their final names; returns notes."""
        directory = self._settings.directory
        rank, world = job.rank_and_world(self._torch)
        job.check_free(self._settings, rank, world)
        host = files.temporary(directory, "host.json.gz")
        device = files.temporary(directory, "device.json.gz")
        recording = step.recording
        finished = host_trace.finish(recording.host_path, host, self._torch._C.parse_schema)
        device_trace.finish(recording.device_path, device, job.device_name(rank))
        recording.discard()
        os.replace(host, os.path.join(directory, job.host_name(rank)))
        os.replace(device, os.path.join(directory, job.device_name(rank)))
        step.facts["nodes"] = finished.nodes
        if not finished.reattached:
            return []
        step.facts["reattached_nodes"] = finished.reattached
        return [
            f"{finished.reattached} nodes ran in a range that began before the recorded step or "
            "ended after it; the range is not in the trace and they are attached to the step"
        ]

    def put_entry(
        self,
        step: RecordedStep,
        finder: StepFinder,
        table: SignatureTable,
        timed: TimedBlock,
        steps_seen: int,
        notes: List[str],
    ) -> None:
        """Writes or replaces the entry of this process in job.json."""
        rank, world = job.rank_and_world(self._torch)
        notes = finder.notes + notes
        if finder.foreign_marks:
            notes = notes + [f"{finder.foreign_marks} step marks of other threads were ignored"]
        for signature in table.all():
            signature.recorded = signature is step.signature
        entry = {
            "pid": os.getpid(),
            "host": job.host_name(rank),
            "device": job.device_name(rank),
            "step_kind": finder.kind,
            "step_pattern": finder.pattern(),
            "steps_seen": steps_seen,
            "signatures": table.to_json(),
            "timed_steps": timed.steps_json(),
            "timed_block": timed.block_json(),
            "recorded_step": step.facts,
            "threads": facts.threads(self._torch),
            "state": facts.state(self._torch),
            "notes": notes,
        }
        self.entry = {name: value for name, value in entry.items() if value is not None}
        job.publish(self._settings, self._torch, rank, world, self.entry)

    def add_note(self, note: str) -> None:
        """Adds a note to the entry that is already written."""
        rank, world = job.rank_and_world(self._torch)
        self.entry["notes"] = self.entry["notes"] + [note]
        job.publish(self._settings, self._torch, rank, world, self.entry)
