"""What is read where a step begins and where it ends."""

from __future__ import annotations

import resource
from time import perf_counter_ns, process_time_ns
from typing import Dict, NamedTuple


class Reading(NamedTuple):
    """Elapsed time, CPU time of all threads of the process, the pages that it was given without
    reading a disk, and how often a thread of it waited; or how much of them has passed."""

    wall_ns: int
    cpu_ns: int
    minor_faults: int
    voluntary_switches: int

    def since(self, start: Reading) -> Reading:
        return Reading(*(mine - others for mine, others in zip(self, start)))

    def plus(self, other: Reading) -> Reading:
        return Reading(*(mine + others for mine, others in zip(self, other)))

    def to_json(self) -> Dict[str, int]:
        return self._asdict()


def begin() -> Reading:
    """The clocks are read last: what it takes to read belongs to no step."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Reading(perf_counter_ns(), process_time_ns(), usage.ru_minflt, usage.ru_nvcsw)


def end() -> Reading:
    """The clocks are read first."""
    wall, cpu = perf_counter_ns(), process_time_ns()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Reading(wall, cpu, usage.ru_minflt, usage.ru_nvcsw)
