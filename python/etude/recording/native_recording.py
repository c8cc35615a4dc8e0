"""Records steps with Etude's own recorder, a library loaded beside torch."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import time
from typing import Any, List, Optional

from . import facts, job, torch_cache
from .device_profile import DeviceProfile
from .module_labels import ModuleLabels
from .settings import Settings
from .step_recording import Published, StepMark, check_profiler_free


# Values of Settings.ranges, as the library's numbers.
_INTEGERS = {"off": 0, "auto": 2, "on": 3}


class NoRecorder(Exception):
    """The native recorder cannot be used; the text contains the reason."""


class NativeRecording:
    """One recording of consecutive steps into a native capture; used like StepRecording.

    Structure, arguments and times come from one pass, so there is one file. `ranges` of the settings is "off"; "auto":
    minima and maxima of integer arguments, and statistics of indices; "on": statistics of all. Events beyond
    `most_bytes` of the file are dropped and counted in it. `outermost`: the outermost modules, if calls of modules are
    to be labelled. `devices` profiles the devices meanwhile, into a second file.
    """

    def __init__(
        self,
        torch: Any,
        library: ctypes.CDLL,
        path: str,
        settings: Settings,
        most_bytes: Optional[int] = None,
        outermost: Optional[List[Any]] = None,
        devices: Optional[DeviceProfile] = None,
    ) -> None:
        self.ranges = settings.ranges != "off"
        self._options = (
            _INTEGERS[settings.ranges],
            most_bytes or 0,
            int(settings.memory),
            int(settings.callback_cost),
            settings.index_values,
        )
        self.active = False
        self._torch = torch
        self._library = library
        self._path = path
        self._mark = StepMark(torch)
        self._outermost = outermost
        self._devices = devices
        self._labels = ModuleLabels(torch, library) if outermost is not None else None

    def start(self, index: int) -> None:
        """Starts recording with the step `index`. Raises Busy if another recording is active."""
        check_profiler_free(self._torch)
        if self._devices is not None:
            self._devices.start()
        _check(self._library.etude_recorder_start(
            os.fsencode(self._path), _header(self._torch), *self._options))
        self.active = True
        if self._labels is not None:
            self._labels.start(self._outermost)
        self._mark.begin(index)

    def next_step(self, index: int) -> None:
        """Ends the range of the current step and begins that of step `index`."""
        self._mark.begin(index)

    def stop(self) -> None:
        """Ends the recording and completes its file."""
        self._mark.end()
        self._stop_labels()
        if self._devices is not None:
            self._devices.finish_work()
        self.active = False
        try:
            _check(self._library.etude_recorder_stop())
        finally:
            if self._devices is not None:
                self._devices.stop()

    def discard(self) -> None:
        """Ends the recording, if it runs, and removes its file."""
        was_active = self.active
        self.active = False
        with contextlib.suppress(Exception):
            self._mark.end()
        self._stop_labels()
        if was_active:
            self._library.etude_recorder_stop()
        with contextlib.suppress(OSError):
            os.remove(self._path)
        if self._devices is not None:
            self._devices.discard()

    def cut_off_child(self) -> None:
        """In a forked child: prevents writes to the parent's capture."""
        self._library.etude_recorder_cut_off_child()
        self.active = False
        self._stop_labels()

    def _stop_labels(self) -> None:
        if self._labels is not None:
            self._labels.stop()
            self._outermost = None

    def publish(self, directory: str, rank: int) -> Published:
        """Renames the file to its final name."""
        name = job.native_name(rank)
        names = {"native": name}
        if self._devices is not None:
            names["device"] = self._devices.publish(directory, rank)
        os.replace(self._path, os.path.join(directory, name))
        return Published(files=names, facts={}, notes=[])


def load(torch: Any, path: Optional[str]) -> ctypes.CDLL:
    """Loads the recorder's library: from `path`, or the one built for this torch.

    Raises NoRecorder if none fits this program.
    """
    why = "the native recorder was not built"
    if path:
        try:
            return _load(torch, path)
        except NoRecorder as error:
            why = str(error)
    root = os.path.dirname(os.path.abspath(torch.__file__))
    try:
        built = torch_cache.built(torch_cache.RECORDER, root, str(torch.__version__))
    except torch_cache.Unsafe as error:
        raise NoRecorder(f"refused to load the native recorder: {error}") from error
    if built is not None:
        return _load(torch, str(built))
    raise NoRecorder(f"{why} (`etude record --build-recorder {sys.executable}` builds one)")


def _load(torch: Any, path: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise NoRecorder(f"cannot load the native recorder: {error}") from error
    library.etude_recorder_torch_version.restype = ctypes.c_char_p
    library.etude_recorder_start.restype = ctypes.c_char_p
    library.etude_recorder_start.argtypes = [
        ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_ulonglong, ctypes.c_int,
        ctypes.c_int, ctypes.c_ulonglong,
    ]
    library.etude_recorder_stop.restype = ctypes.c_char_p
    built = library.etude_recorder_torch_version().decode()
    if built != torch.__version__:
        raise NoRecorder(f"the native recorder was built for torch {built}, not {torch.__version__}")
    return library


def _check(problem: Optional[bytes]) -> None:
    if problem is not None:
        raise OSError(problem.decode("utf-8", "replace"))


def _header(torch: Any) -> bytes:
    """Returns facts of the process, as members of a JSON object."""
    rank, world = job.rank_and_world(torch)
    members = {
        "pid": os.getpid(),
        "rank": rank,
        "world_size": world,
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "torch": torch.__version__,
        "etude_clock": facts.clock(),
    }
    return json.dumps(members)[1:-1].encode()
