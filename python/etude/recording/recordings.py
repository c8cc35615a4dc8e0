"""Selects the recorder of a step: the native recorder if it fits the program, otherwise PyTorch's observers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, List, Optional, Union

from . import facts, heap, native_recording
from .device_profile import DeviceProfile
from .native_recording import NativeRecording
from .settings import Settings
from .step_recording import StepRecording, uses_cuda
from .steps import StepFinder


@dataclass
class Made:
    """A recording that has not begun. `profiled`: it uses PyTorch's profiler."""

    recording: Union[StepRecording, NativeRecording]
    profiled: bool
    notes: List[str] = field(default_factory=list)


def make(
    torch: Any,
    settings: Settings,
    prefix: str,
    *,
    finder: StepFinder,
    most_bytes: Optional[int] = None,
    devices: bool = True,
) -> Made:
    """Makes a recording into temporary files that begin with `prefix`; `finder` contains facts of the program.

    `devices`: whether devices are profiled, if the program uses some.
    """
    heap.facts()  # cached, because the recording may be published at the program's end, where no thread can start
    notes = []
    if settings.recorder != "observers":
        try:
            library = native_recording.load(torch, settings.library)
            path = f"{prefix}.capture"
            outermost = None
            # Replacing the calls of modules may cause compiled code to be compiled again.
            keeps_code = settings.recorder == "native" or not facts.compiled_frames()
            if settings.modules and not finder.modules.learning and keeps_code:
                outermost = finder.modules.outermost()
            profiled = devices and uses_cuda(torch)
            profile = DeviceProfile(torch, f"{prefix}.device") if profiled else None
            made = NativeRecording(torch, library, path, settings, most_bytes, outermost, profile)
            return Made(made, profiled=profiled)
        except native_recording.NoRecorder as error:
            notes.append(f"{error}: recorded with PyTorch's observers instead")
    ranges = _want_ranges(torch, settings, finder.optimizers.have_tensor_subclasses())
    recording = StepRecording(
        torch, f"{prefix}.host", f"{prefix}.device", ranges, settings.memory, devices
    )
    return Made(recording, profiled=True, notes=notes)


def _want_ranges(torch: Any, settings: Settings, subclasses: bool) -> bool:
    """Returns whether to record minima and maxima of integer inputs, which the observer reads with torch's kernels.

    On a GPU these kernels would be in the trace; under torch.compile and with tensor subclasses reading can fail inside
    the program. Ranges are omitted in these cases.
    """
    if settings.ranges != "auto":
        return settings.ranges == "on"
    return not (uses_cuda(torch) or facts.compiled_frames() or subclasses)
