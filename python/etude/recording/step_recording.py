"""Runs the execution trace observer and the profiler for one step (or a few in a row)."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional

from . import device_trace, files, host_trace, job
from .counted import counted
from .wait_labels import WaitLabels, communicates_on_host

# Several time slices of the scheduler, for ranks that share cores.
_FOR_GLOO_S = 0.02
_RANGES_VARIABLE = "ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_RANGE"


class Busy(Exception):
    """The observer or the profiler is in use; the text names it."""


class RangesFailed(Exception):
    """The observer stopped during the recording because it could not read an integer input."""


@dataclass
class Published:
    """Files and facts of a recording in the capture folder.

    `files` belongs to the rank's entry of job.json, `facts` to the entry of the recorded step.
    """

    files: Dict[str, str]
    facts: Dict[str, Any]
    notes: List[str]


class StepMark:
    """The range `ProfilerStep#<index>` around the recorded step, and labels of waits inside it."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._range: Optional[Any] = None
        self._waits = WaitLabels(torch)

    def begin(self, index: int) -> None:
        """Ends the range of the previous step, if there is one, and begins that of step `index`."""
        self.end()
        begun = self._torch.autograd.profiler.record_function(f"ProfilerStep#{index}")
        begun.__enter__()
        self._range = begun
        self._waits.start()

    def end(self) -> None:
        self._waits.stop()
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None


def check_profiler_free(torch: Any) -> None:
    """Raises Busy if a profiler of the program runs."""
    if torch.autograd._profiler_enabled():
        raise Busy("a profiler of the program is running")


class StepRecording:
    """One recording of consecutive steps into two plain JSON files.

    `start` begins it together with the first step, `next_step` marks the boundary to a further one, `stop` ends it and
    completes the files, `discard` ends it and removes them; call `discard` also if `start` or `stop` raised. Each step
    is covered by a range `ProfilerStep#<index>`. All calls must come from the thread that runs the steps. On CUDA the
    devices are synchronised before the start and before the end, so that the trace contains exactly the kernels of its
    steps. `ranges` requests the minima and maxima of integer inputs, `memory` allocator events, `devices` the work of
    CUDA devices.
    """

    def __init__(
        self, torch: Any, host_path: str, device_path: str, ranges: bool, memory: bool = False,
        devices: bool = True,
    ) -> None:
        self.host_path = host_path
        self.device_path = device_path
        self.active = False
        self._torch = torch
        self.ranges = ranges
        self._memory = memory
        self._devices = devices
        self._observer: Optional[Any] = None
        self._profile: Optional[Any] = None
        self._mark = StepMark(torch)

    def start(self, index: int) -> None:
        """Starts recording with the step `index`. Raises Busy if another recording is active."""
        torch = self._torch
        check_profiler_free(torch)
        synchronize(torch)
        try:
            self._observer = self._start_observer()
            self._profile = self._make_profile(self._observer)
            self.active = True  # first, because a failed start must be ended, too
            self._profile.start()
        except RuntimeError as error:
            raise Busy(f"the profiler did not start: {error}") from error
        self._mark.begin(index)

    def next_step(self, index: int) -> None:
        """Ends the range of the current step and begins that of step `index`."""
        self._mark.begin(index)

    def stop(self) -> None:
        """Ends the recording; both files are complete afterwards.

        Raises RangesFailed if reading integer inputs broke it.
        """
        self._mark.end()
        synchronize(self._torch)
        let_gloo_end_labels(self._torch)
        self._profile.stop()
        self.active = False
        # Completes the observer's JSON.
        self._observer.unregister_callback()
        self._profile.export_chrome_trace(self.device_path)
        self._observer = None
        self._profile = None
        if self.ranges and not _ranges_were_safe(self._torch):
            raise RangesFailed("the observer failed while reading an integer input")

    def discard(self) -> None:
        """Ends the recording, if it runs, and removes its files."""
        was_active = self.active
        self.active = False
        with contextlib.suppress(Exception):
            self._mark.end()
        if was_active:
            with contextlib.suppress(Exception):
                self._profile.stop()
        if self._observer is not None:
            with contextlib.suppress(Exception):
                self._observer.unregister_callback()
        self._observer = None
        self._profile = None
        for path in (self.host_path, self.device_path):
            with contextlib.suppress(OSError):
                os.remove(path)

    def publish(self, directory: str, rank: int) -> Published:
        """Completes the files and renames them to their final names."""
        host = files.temporary(directory, "host.json.gz")
        device = files.temporary(directory, "device.json.gz")
        finished = host_trace.finish(self.host_path, host, self._torch._C.parse_schema)
        device_trace.finish(self.device_path, device, job.device_name(rank))
        self.discard()
        os.replace(host, os.path.join(directory, job.host_name(rank)))
        os.replace(device, os.path.join(directory, job.device_name(rank)))
        published = Published(
            files={"host": job.host_name(rank), "device": job.device_name(rank)},
            facts={"nodes": finished.nodes},
            notes=[],
        )
        if finished.reattached:
            published.facts["reattached_nodes"] = finished.reattached
            published.notes.append(
                counted(finished.reattached, "node")
                + " ran in a range that began before the recorded step or ended after it; the "
                "range is missing in the trace, and its nodes are attached to the step"
            )
        return published

    def cut_off_child(self) -> None:
        """In a forked child: prevents writes to the parent's trace."""
        if self._observer is None:
            return
        with contextlib.suppress(Exception):
            self._torch._C._profiler._disable_execution_trace_observer()
        # The child's buffered output must not reach the file, either.
        _redirect_to_null(self.host_path)
        # The observer's destructor would complete the parent's file.
        self._observer._registered = False
        self.active = False

    def _start_observer(self) -> Any:
        observer = self._torch.profiler.ExecutionTraceObserver()
        with _environment(_RANGES_VARIABLE, "1" if self.ranges else None):
            observer.register_callback(self.host_path)
        # Registering a second observer "succeeds", but the first one stays: no file appears.
        if not os.path.exists(self.host_path):
            observer._registered = False
            raise Busy("an execution trace observer of the program is registered")
        return observer

    def _make_profile(self, observer: Any) -> Any:
        profiler = self._torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self._devices and uses_cuda(self._torch):
            activities.append(profiler.ProfilerActivity.CUDA)
        return make_profile(
            self._torch,
            activities=activities,
            record_shapes=True,
            profile_memory=self._memory,
            execution_trace_observer=observer,
        )


def uses_cuda(torch: Any) -> bool:
    """Returns whether the program has used a CUDA device, without initialising one."""
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _ranges_were_safe(torch: Any) -> bool:
    """Returns whether ranges are still recorded after a recording that read integer inputs.

    Reading an input without data (a meta tensor) makes the observer throw, and torch then leaves all recording disabled
    in this thread. This is repaired here.
    """
    name = "etude probe"
    with torch.autograd.profiler.profile(use_kineto=True) as probe:
        with torch.autograd.profiler.record_function(name):
            pass
    if any(event.name() == name for event in probe.kineto_results.events()):
        return True
    torch._C._autograd._enable_record_function(True)
    return False


def let_gloo_end_labels(torch: Any) -> None:
    """Gives Gloo's threads time to end the labels of finished collectives.

    They wake the waiting thread first; a label that ends after the recording is lost.
    """
    if communicates_on_host(torch):
        time.sleep(_FOR_GLOO_S)


def synchronize(torch: Any) -> None:
    if uses_cuda(torch):
        torch.cuda.synchronize()


def make_profile(torch: Any, **options: Any) -> Any:
    """Makes PyTorch's profiler for one recording, with CUDA synchronisation events if supported.

    Uses the plain base class, which has no step count shared with the program's profilers.
    """
    kind = getattr(torch.profiler, "_KinetoProfile", torch.profiler.profile)
    more = _experimental_config(torch)
    return kind(
        # Prevents an irrelevant warning of PyTorch 2.11 in the program.
        acc_events=True,
        **({} if more is None else {"experimental_config": more}),
        **options,
    )


def _experimental_config(torch: Any) -> Optional[Any]:
    """Returns options that not every version has: CUDA synchronisation events, no event tables."""
    try:
        make = torch._C._profiler._ExperimentalConfig
    except AttributeError:
        return None
    choices: List[dict] = [
        {"enable_cuda_sync_events": True, "trace_only": True},
        {"enable_cuda_sync_events": True},
        {},
    ]
    for options in choices:
        with contextlib.suppress(TypeError):
            return make(**options)
    return None


@contextlib.contextmanager
def _environment(name: str, value: Optional[str]) -> Iterator[None]:
    """Sets an environment variable temporarily; None leaves it unchanged."""
    if value is None:
        yield
        return
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _redirect_to_null(path: str) -> None:
    folder = "/proc/self/fd"
    try:
        names = os.listdir(folder)
        null = os.open(os.devnull, os.O_WRONLY)
    except OSError:
        return
    target = os.path.realpath(path)
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            if os.path.realpath(os.path.join(folder, name)) == target:
                os.dup2(null, int(name))
    os.close(null)
