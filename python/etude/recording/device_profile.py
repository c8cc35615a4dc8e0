"""Profiles devices while the native recorder records the host."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Optional

from . import device_trace, files, job
from .step_recording import Busy, make_profile, synchronize


class DeviceProfile:
    """PyTorch's profiler for CUDA only, writing a plain JSON file: kernels, copies and runtime calls.

    Without the activity CPU it registers no operator callbacks; these belong to the native recorder. Devices are
    synchronised before the start and by `finish_work`, so that the profile contains exactly the work of its steps. Used
    by one recording.
    """

    def __init__(self, torch: Any, path: str) -> None:
        self._torch = torch
        self._path = path
        self._profile: Optional[Any] = None

    def start(self) -> None:
        """Starts the profiler. Raises Busy if it cannot run."""
        synchronize(self._torch)
        try:
            self._profile = make_profile(
                self._torch, activities=[self._torch.profiler.ProfilerActivity.CUDA]
            )
            self._profile.start()
        except (RuntimeError, AssertionError) as error:
            raise Busy(f"the device profiler did not start: {error}") from error

    def finish_work(self) -> None:
        """Waits for all launched work."""
        synchronize(self._torch)

    def stop(self) -> None:
        """Ends the profile and completes its file."""
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
        """Completes the file, renames it to its final name, and returns the name."""
        name = job.device_name(rank)
        target = files.temporary(directory, "device.json.gz")
        device_trace.finish(self._path, target, name)
        self.discard()
        os.replace(target, os.path.join(directory, name))
        return name
