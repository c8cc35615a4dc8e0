"""Folder of a program on duty: a capture folder per recording, shared by the ranks of a job.

A recording is made in a hidden folder. The last rank to complete it renames the folder, so named recordings are
complete. Remains of an earlier run are ignored; they are recognised by their age, so the clocks of the folder's host
and of the ranks should agree to the second.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from typing import List, Optional, Tuple

from . import files, job

_NAME = "step-{:09d}"
_STOPPED = ".stopped"
_REQUEST = ".request-{:09d}"


class DutyFolder:
    """Used by one process of the job. Methods raise OSError if writing fails."""

    def __init__(self, path: str, keep: Optional[int]) -> None:
        self.path = path
        self._keep = keep
        self._began = time.time()
        os.makedirs(path, exist_ok=True)
        files.check_writable(path)

    def open(self, step: int) -> Tuple[str, List[int]]:
        """Returns the hidden folder of the recording that begins with `step`; the first rank creates it.

        Also returns the steps of incomplete recordings that were removed: all earlier ones except the last, which other
        ranks may still write.
        """
        hidden = self._hidden(step)
        with files.locked(self.path):
            if os.path.exists(hidden) and not self._is_ours(hidden):
                shutil.rmtree(hidden)
            os.makedirs(hidden, exist_ok=True)
            unfinished = sorted(
                number for number in self._numbers("." + _NAME) if number < step
            )[:-1]
            lost = [number for number in unfinished if self._is_ours(self._hidden(number))]
            for number in unfinished:
                shutil.rmtree(self._hidden(number), ignore_errors=True)
        return hidden, lost

    def publish(self, step: int) -> bool:
        """Renames the recording if no rank is missing; returns whether it did.

        Raises job.RankTaken if another current program has put a recording in its place.
        """
        hidden = self._hidden(step)
        name = os.path.join(self.path, _NAME.format(step))
        with files.locked(self.path):
            document = files.read_json(hidden, files.JOB)
            if document is None or len(document["ranks"]) < document["world_size"]:
                return False
            if os.path.exists(name):
                if self._is_ours(name):
                    raise job.RankTaken(f"another program records into {self.path}")
                shutil.rmtree(name)
            files.remove_lock(hidden)
            os.replace(hidden, name)
            self._tidy(step)
        return True

    def discard(self, step: int) -> None:
        """Removes this rank's part of a recording; parts of other ranks stay hidden."""
        hidden = self._hidden(step)
        files.remove_temporaries(hidden)
        with contextlib.suppress(OSError):
            os.rmdir(hidden)

    def request(self, step: int) -> None:
        """Requests a recording from `step` on from all ranks."""
        self._touch(_REQUEST.format(step))

    def is_requested(self, step: int) -> bool:
        return self._is_ours(os.path.join(self.path, _REQUEST.format(step)))

    def stop(self) -> None:
        """Asks all ranks to stop recording."""
        self._touch(_STOPPED)

    def is_stopped(self) -> bool:
        return self._is_ours(os.path.join(self.path, _STOPPED))

    def _hidden(self, step: int) -> str:
        return os.path.join(self.path, "." + _NAME.format(step))

    def _touch(self, name: str) -> None:
        path = os.path.join(self.path, name)
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))

    def _is_ours(self, path: str) -> bool:
        """Returns whether the path exists and belongs to this run."""
        try:
            return os.stat(path).st_mtime >= self._began - 1
        except FileNotFoundError:
            return False

    def _tidy(self, step: int) -> None:
        """Removes everything before the latest recording: requests, incomplete recordings, and recordings beyond those
        to keep.
        """
        for number in self._numbers(_REQUEST):
            if number <= step:
                os.remove(os.path.join(self.path, _REQUEST.format(number)))
        for number in self._numbers("." + _NAME):
            if number < step:
                shutil.rmtree(self._hidden(number), ignore_errors=True)
        if self._keep is None:
            return
        whole = [os.path.join(self.path, _NAME.format(n)) for n in self._numbers(_NAME)]
        for path in sorted(whole, key=lambda path: (os.stat(path).st_mtime, path))[: -self._keep]:
            shutil.rmtree(path, ignore_errors=True)

    def _numbers(self, form: str) -> List[int]:
        """Returns the numbers in existing names of this form."""
        found = []
        for name in os.listdir(self.path):
            number = name.rpartition("-")[2]
            if number.isdecimal() and name == form.format(int(number)):
                found.append(int(number))
        return found
