"""Recording from Python: `with etude.record("folder"):`."""

from __future__ import annotations

import dataclasses
import os
import sys
import warnings
from typing import Any, Optional, Union

from . import files, job, session
from .recorder import Recorder
from .replacement import Replacement, holds_capture
from .settings import Settings, job_name


class RecordingError(RuntimeError):
    """A recording that cannot start, or with `strict` a missing capture."""


class RecordingWarning(UserWarning):
    """A missing capture; the text contains the reason and the remedy."""


class record:
    """Records the steps that run in the block into a capture folder.

    Steps are found as in `etude record`: optimizer steps, calls of the outermost module, or `profiler.step()`; call
    `step()` at the end of each step to mark it explicitly. First `warmup` steps pass, then `steps` are timed without
    instrumentation, then `record_steps` are recorded; or with `kinds` (a number, or "auto") as many as contain the
    kinds of steps that take the most time. `done` is True when the capture is complete, so that a loop can stop.
    Afterwards the block may continue at no cost.

    `recorder` is "auto" (Etude's own recorder if it was built for this torch, otherwise PyTorch's observers) or
    "observers". `modules` makes the native recorder label the calls of modules.

    `overwrite` allows replacing an earlier capture once the new one is complete. If the block raises before, or a rank
    does not finish, the earlier one is kept. A block that ends too early leaves a capture of its third step and issues
    a RecordingWarning. Without a capture, after less than three steps, a RecordingWarning is issued, or with `strict` a
    RecordingError raised; `status` contains the facts. Notes on a capture (in job.json) are RecordingWarnings, too.
    Exceptions of the block pass through. In a job of several ranks each rank enters a block with the same folder. Under
    `etude record` the block has no effect, because the program is already recorded; under `etude compare --run` it only
    marks steps.

    Raises RecordingError on entry if a recording is active, or the folder contains a capture of this rank, and
    ValueError for arguments out of range.
    """

    def __init__(
        self,
        directory: Any,
        *,
        warmup: int = Settings.warmup,
        steps: int = Settings.steps,
        record_steps: int = Settings.record_steps,
        kinds: Union[int, str] = Settings.kinds,
        kind: str = Settings.kind,
        ranges: str = Settings.ranges,
        recorder: str = Settings.recorder,
        modules: bool = Settings.modules,
        overwrite: bool = False,
        strict: bool = False,
    ) -> None:
        self._settings = Settings(
            directory=os.path.abspath(os.fspath(directory)),
            warmup=warmup,
            steps=steps,
            record_steps=record_steps,
            kinds=kinds,
            kind=kind,
            ranges=ranges,
            recorder=recorder,
            library=os.environ.get("ETUDE_RECORD_LIBRARY"),
            modules=modules,
            command=list(getattr(sys, "orig_argv", sys.argv)),
            job=job_name(),
            etude_version=getattr(sys.modules.get("etude"), "__version__", None),
        )
        self._overwrite = overwrite
        self._strict = strict
        self._recorder: Optional[Recorder] = None
        self._replacement: Optional[Replacement] = None
        self._pacer: Optional[Any] = None
        self._entered = False

    @property
    def done(self) -> bool:
        """Whether the capture of this rank is complete."""
        return self._recorder is not None and self._recorder.complete

    @property
    def status(self) -> dict:
        """Progress and state of the recording, as in the status file."""
        return self._recorder.status.to_json() if self._recorder is not None else {}

    def step(self) -> None:
        """Marks the end of a step; after the first call only these marks count."""
        marked = self._pacer or self._recorder
        if marked is not None:
            marked.mark()

    def __enter__(self) -> record:
        if self._entered:
            raise RecordingError("this recording was already used: create a new one")
        session.quiet_logs()
        import torch

        running = session.active(torch)
        if running is not None and type(running).__module__.startswith("_etude_recording"):
            self._entered = True
            if type(running).__module__.endswith(".pacing"):
                self._pacer = running
                return self
            warnings.warn(
                "this block does nothing, because `etude record` or ETUDE_RECORD already records the program",
                RecordingWarning,
                stacklevel=2,
            )
            return self
        if running is not None:
            raise RecordingError("a recording is already active in this process")
        self._check_folder(torch)
        self._entered = True
        recorder = Recorder(torch, self._settings)
        recorder.attach()
        session.set_active(torch, recorder)
        self._recorder = recorder
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        import torch

        recorder.close(f"it ended with {kind.__name__}" if kind is not None else None)
        session.set_active(torch, None)
        status = recorder.status.to_json()
        recorder.status.remove()
        recorded = recorder.complete or recorder.provisional
        if self._replacement is not None:
            well = recorder.complete or (recorder.provisional and kind is None)
            recorded = self._replacement.ended(well)
            if not recorded:
                text = f"{os.path.dirname(self._replacement.folder)}: the earlier capture is unchanged"
                warnings.warn(text, RecordingWarning, stacklevel=2)
        if recorded:
            for note in recorder.notes:
                warnings.warn(note, RecordingWarning, stacklevel=2)
        if recorded or kind is not None:
            return
        text = _describe(status)
        if self._strict:
            raise RecordingError(text)
        warnings.warn(text, RecordingWarning, stacklevel=2)

    def _check_folder(self, torch: Any) -> None:
        directory = self._settings.directory
        try:
            os.makedirs(directory, exist_ok=True)
        except OSError as error:
            raise RecordingError(f"{directory}: cannot create it: {error.strerror}") from error
        rank, world = job.rank_and_world(torch)
        try:
            if self._overwrite and holds_capture(directory):
                self._replacement = Replacement(directory, rank, world)
                self._settings = dataclasses.replace(
                    self._settings, directory=self._replacement.folder
                )
                return
            entry = (files.read_json(directory, files.JOB) or {}).get("ranks", {}).get(str(rank))
            if entry is not None:
                raise job.RankTaken(f"rank {rank} was recorded earlier; overwrite=True replaces it")
            job.check_free(self._settings, rank, world)
        except (job.RankTaken, OSError, ValueError) as error:
            raise RecordingError(f"{directory}: {error}") from error


def _describe(status: dict) -> str:
    text = f"no capture: {status.get('reason', 'unknown')}"
    fits = status.get("suggest")
    if fits:
        text += f"; warmup={fits['warmup']}, steps={fits['steps']} would fit the number of steps"
    return text
