"""A capture that replaces an earlier one after all of its ranks have ended."""

from __future__ import annotations

import contextlib
import os
import re
import shutil

from . import files, job

# src/cli/record/recording_folder.cc uses the same folder, and the same file names of captures.
_STAGING = ".etude-recording"
_OF_CAPTURE = re.compile(r".*\.et|job\.json|(host|device|linked|capture|replay|compare)\.(\d.*|json)")
_DONE = ".done."


class Replacement:
    """A hidden folder inside a capture's folder, which ranks record into.

    The last rank that succeeds replaces the earlier capture by its content. If ranks fail, the earlier one is kept.
    Raises OSError, and ValueError for an invalid job.json.
    """

    def __init__(self, directory: str, rank: int, world: int) -> None:
        self.folder = os.path.join(directory, _STAGING)
        self._directory = directory
        self._rank = rank
        self._world = world
        if os.path.islink(self.folder):
            os.remove(self.folder)
        os.makedirs(self.folder, exist_ok=True)
        # Removes remains of an unfinished run.
        self._forget_rank()

    def ended(self, well: bool) -> bool:
        """Called when this rank has ended; returns whether its capture is kept."""
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
        # The job refers to the other files, so it comes last.
        names = [name for name in os.listdir(self.folder) if not name.startswith(".")]
        for name in sorted(names, key=lambda name: name == files.JOB):
            os.replace(os.path.join(self.folder, name), os.path.join(self._directory, name))
        shutil.rmtree(self.folder, ignore_errors=True)


def holds_capture(directory: str) -> bool:
    """Returns whether the folder contains a replaceable capture. ValueError for an invalid job.json."""
    found = files.read_json(directory, files.JOB)
    return found is not None and found.get("format") == "etude-job"
