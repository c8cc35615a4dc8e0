"""Profiles what devices do while the native recorder records the host."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Optional

from . import device_trace, files, job
from .step_recording import Busy, make_profile, synchronize


class DeviceProfile:
    """PyTorch's profiler for CUDA alone, into a plain JSON file: kernels, copies and the runtime's calls.

    Without the activity CPU it registers no callbacks on operators: those are the native recorder's.
    The devices are synchronised before the start and by `finish_work`, so that the profile holds the
    work of its steps and no other. Used by one recording.
    """

    def __init__(self, torch: Any, path: str) -> None:
        self._torch = torch
        self._path = path
        self._profile: Optional[Any] = None

    def start(self) -> None:
        """Raises Busy when the profiler cannot run."""
        synchronize(self._torch)
        try:
            self._profile = make_profile(
                self._torch, activities=[self._torch.profiler.ProfilerActivity.CUDA]
            )
            self._profile.start()
        except (RuntimeError, AssertionError) as error:
            raise Busy(f"the profiler of the devices did not start: {error}") from error

    def finish_work(self) -> None:
        """Waits for all that was launched."""
        synchronize(self._torch)

    def stop(self) -> None:
        """Ends the profile; its file is complete afterwards."""
        profile, self._profile = self._profile, None
        profile.stop()
        profile.export_chrome_trace(self._path)

    def discard(self) -> None:
        """Ends the profile, if it runs, and removes its file."""
        profile, self._profile = self._profile, None
        if profile is not None:
            with contextlib.suppress(Exception):
                profile.stop()
        with contextlib.suppress(OSError):
            os.remove(self._path)

    def publish(self, directory: str, rank: int) -> str:
        """Finishes the file, and gives it its final name, which it returns."""
        name = job.device_name(rank)
        target = files.temporary(directory, "device.json.gz")
        device_trace.finish(self._path, target, name)
        self.discard()
        os.replace(target, os.path.join(directory, name))
        return name
