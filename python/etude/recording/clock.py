"""What is read where a step begins and where it ends."""

from __future__ import annotations

import os
import resource
from time import perf_counter_ns, process_time_ns
from typing import Dict, NamedTuple


class Reading(NamedTuple):
    """Elapsed time, CPU time of all threads of the process, the pages that it was given without
    reading a disk, how often a thread of it waited, and for how long this thread could have run
    while other work had its processor (0 where the system does not say); or how much of them has
    passed."""

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
    """The clocks are read last: what it takes to read belongs to no step."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    stolen = _stolen_ns()
    return Reading(perf_counter_ns(), process_time_ns(), usage.ru_minflt, usage.ru_nvcsw, stolen)


def end() -> Reading:
    """The clocks are read first."""
    wall, cpu = perf_counter_ns(), process_time_ns()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Reading(wall, cpu, usage.ru_minflt, usage.ru_nvcsw, _stolen_ns())


def _stolen_ns() -> int:
    """How long this thread has waited in the queue of a processor (Documentation/scheduler/sched-stats.rst of
    Linux, the second field)."""
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
