"""Clock readings at the begin and the end of a step."""

from __future__ import annotations

import os
import resource
from time import perf_counter_ns, process_time_ns
from typing import Dict, NamedTuple


class Reading(NamedTuple):
    """Elapsed time, CPU time of all threads of the process, minor page faults, number of waits of its threads, and time
    for which this thread was ready while other work used its processor (0 if unknown); or differences of these.
    """

    wall_ns: int
    cpu_ns: int
    minor_faults: int
    voluntary_switches: int
    stolen_ns: int = 0

    def since(self, start: Reading) -> Reading:
        return Reading(*(mine - others for mine, others in zip(self, start)))

    def plus(self, other: Reading) -> Reading:
        return Reading(*(mine + others for mine, others in zip(self, other)))

    def to_json(self) -> Dict[str, int]:
        return self._asdict()


def begin() -> Reading:
    """Reads the clocks last, so that the cost of reading belongs to no step."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    stolen = _stolen_ns()
    return Reading(perf_counter_ns(), process_time_ns(), usage.ru_minflt, usage.ru_nvcsw, stolen)


def end() -> Reading:
    """Reads the clocks first."""
    wall, cpu = perf_counter_ns(), process_time_ns()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Reading(wall, cpu, usage.ru_minflt, usage.ru_nvcsw, _stolen_ns())


def _stolen_ns() -> int:
    """Returns the time that this thread has waited in a processor's run queue (second field in Linux's
    Documentation/scheduler/sched-stats.rst).
    """
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(file, 100).split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        os.close(file)
