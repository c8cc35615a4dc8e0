"""The job's description in the capture folder, with one entry per finished rank."""

from __future__ import annotations

import os
from typing import Any, List, Optional, Tuple

from . import facts, files, marks
from .settings import Settings

# Environment variables of launchers: (rank, world size). src/cli/app/launcher.cc supports more of each.
_RANK_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


class RankTaken(Exception):
    """Another process, or an earlier run, has written this rank of the capture."""


def rank_and_world(torch: Any) -> Tuple[int, int]:
    """Returns rank and world size: from torch.distributed, otherwise from the launcher's variables, otherwise (0, 1)."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    for rank_name, world_name in _RANK_VARIABLES:
        rank = _number(os.environ.get(rank_name))
        world = _number(os.environ.get(world_name))
        if rank is not None and world is not None and 0 <= rank < world:
            return rank, world
    return 0, 1


def host_name(rank: int) -> str:
    return f"host.{rank}.json.gz"


def device_name(rank: int) -> str:
    return f"device.{rank}.json.gz"


def native_name(rank: int) -> str:
    return f"capture.{rank}.etude"


def check_free(settings: Settings, rank: int, world: int) -> None:
    """Raises RankTaken if this process may not write the rank."""
    _check(files.read_json(settings.directory, files.JOB), settings, rank, world)


def publish(settings: Settings, torch: Any, rank: int, world: int, entry: dict) -> None:
    """Writes or replaces the entry of a rank in job.json. Raises RankTaken."""

    def change(job: Optional[dict]) -> dict:
        _check(job, settings, rank, world)
        if job is None:
            job = _new_job(settings, torch, world)
        job["ranks"][str(rank)] = entry
        job["ranks"] = {key: job["ranks"][key] for key in sorted(job["ranks"], key=int)}
        return job

    files.update_job(settings.directory, change)


def remove_rank(directory: str, rank: int) -> None:
    """Removes an earlier recording of a rank; with the last one the job is removed."""

    def change(job: Optional[dict]) -> dict:
        job = job or {"ranks": {}}
        job["ranks"].pop(str(rank), None)
        return job

    if files.read_json(directory, files.JOB) is None:
        return
    files.update_job(directory, change)
    names = [host_name(rank), device_name(rank), native_name(rank)]
    job = files.read_json(directory, files.JOB)
    if job is not None and not job["ranks"]:
        names.append(files.JOB)
    for name in names:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            os.remove(path)


def _check(job: Optional[dict], settings: Settings, rank: int, world: int) -> None:
    if job is None:
        return
    if job.get("format") != "etude-job":
        raise RankTaken(f"{files.JOB}: found another document, expected format etude-job")
    if job.get("job") != settings.job or job.get("world_size") != world:
        raise RankTaken("the folder contains the capture of another job")
    entry = job["ranks"].get(str(rank))
    if entry is not None and entry.get("pid") != os.getpid():
        raise RankTaken(f"rank {rank} was already recorded by process {entry.get('pid')}")


def mark_notes(settings: Settings) -> List[str]:
    """Returns notes for a capture that cannot have its user's mark."""
    why = _mark(settings)[1]
    return [f"the capture has no user mark, so `etude compare --run` requires --trust: {why}"] if why else []


def _mark(settings: Settings) -> Tuple[Optional[str], str]:
    """Returns the capture's mark (or None), and the reason for a missing mark; "" if the capture has no command."""
    if not settings.command:
        return None, ""
    try:
        return marks.mark(settings.job, settings.command, settings.folder), ""
    except marks.NoKey as error:
        return None, str(error)


def _new_job(settings: Settings, torch: Any, world: int) -> dict:
    job = {
        "format": "etude-job",
        "version": 1,
        "job": settings.job,
        "command": settings.command or None,
        "mark": _mark(settings)[0],
        "world_size": world,
        "versions": facts.versions(torch, settings.etude_version),
        "machine": facts.machine(torch),
        "threads": facts.threads(torch),
        "ranks": {},
    }
    return {name: value for name, value in job.items() if value is not None}


def _number(text: Optional[str]) -> Optional[int]:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
