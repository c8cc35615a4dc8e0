"""A capture that takes the place of an earlier one when all its ranks have ended, and not before."""

from __future__ import annotations

import contextlib
import os
import re
import shutil

from . import files, job

# src/cli/record/recording_folder.cc uses the same folder, and takes the same names for a capture's.
_STAGING = ".etude-recording"
_OF_CAPTURE = re.compile(r".*\.et|job\.json|(host|device|linked|capture|replay|compare)\.(\d.*|json)")
_DONE = ".done."


class Replacement:
    """A hidden folder in that of a capture, which ranks record into.

    The last rank that ends well puts what is in it in the place of the earlier capture. Where ranks
    fail the earlier one stays as it was. Raises OSError, and ValueError where job.json is none.
    """

    def __init__(self, directory: str, rank: int, world: int) -> None:
        self.folder = os.path.join(directory, _STAGING)
        self._directory = directory
        self._rank = rank
        self._world = world
        if os.path.islink(self.folder):
            os.remove(self.folder)
        os.makedirs(self.folder, exist_ok=True)
        # What a run has left that did not end.
        self._forget_rank()

    def ended(self, well: bool) -> bool:
        """This rank has ended; returns whether its capture is not lost."""
        if not well:
            self._forget_rank()
            if self._world == 1:
                shutil.rmtree(self.folder, ignore_errors=True)
            return False
        with files.locked(self._directory):
            with open(self._done(self._rank), "w", encoding="utf-8"):
                pass
            if all(os.path.exists(self._done(rank)) for rank in range(self._world)):
                self._take_place()
        return True

    def _done(self, rank: int) -> str:
        return os.path.join(self.folder, f"{_DONE}{rank}")

    def _forget_rank(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._done(self._rank))
        job.remove_rank(self.folder, self._rank)

    def _take_place(self) -> None:
        for name in os.listdir(self._directory):
            if _OF_CAPTURE.fullmatch(name):
                os.remove(os.path.join(self._directory, name))
        # The job names the other files: it comes last.
        names = [name for name in os.listdir(self.folder) if not name.startswith(".")]
        for name in sorted(names, key=lambda name: name == files.JOB):
            os.replace(os.path.join(self.folder, name), os.path.join(self._directory, name))
        shutil.rmtree(self.folder, ignore_errors=True)


def holds_capture(directory: str) -> bool:
    """Whether there is a capture that one may replace. ValueError where job.json is none."""
    found = files.read_json(directory, files.JOB)
    return found is not None and found.get("format") == "etude-job"
