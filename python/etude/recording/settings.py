"""Settings of a recording, from keyword arguments or from the environment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import marks

KINDS = ("auto", "optimizer", "module", "profiler", "explicit")
RANGES = ("auto", "on", "off")
RECORDERS = ("auto", "observers", "native")
# Written by src/cli/record/recording_folder.cc.
_COMMAND_FILE = ".etude-command"


@dataclass(frozen=True)
class Settings:
    """One recording. Counts are steps.

    directory: the capture folder. warmup: steps before the first timed one. steps: timed steps of the recorded
    signature. record_steps: minimum of steps in the trace files. kinds: number of signatures with the most time that
    they contain, or "auto": those with 90 % of the time. kind: marks that end a step. ranges: whether minima and maxima
    of integer inputs are recorded ("auto": on the CPU). recorder: "observers" (PyTorch's), or the native recorder in
    `library` if it fits the program's torch ("auto", and "native", for which `etude record` builds one). memory:
    whether allocator events are recorded. callback_cost: whether the native recorder measures its cost per call, which
    readers subtract from times. index_values: bytes of index tensors that the native recorder may keep completely.
    modules: whether it labels the calls of modules. command: the program's command line. folder: its working folder.
    job: a text that is equal in all processes of one run.
    """

    directory: str
    warmup: int = 5
    steps: int = 20
    record_steps: int = 1
    kinds: Union[int, str] = 1
    kind: str = "auto"
    ranges: str = "auto"
    recorder: str = "auto"
    library: Optional[str] = None
    memory: bool = False
    callback_cost: bool = True
    index_values: int = 0
    modules: bool = True
    command: List[str] = field(default_factory=list)
    folder: Optional[str] = field(default_factory=marks.working_folder)
    job: Optional[str] = None
    etude_version: Optional[str] = None

    def __post_init__(self) -> None:
        if not self.directory:
            raise ValueError("missing capture folder")
        _check_count("warmup", self.warmup, 0)
        _check_count("steps", self.steps, 1)
        _check_count("record_steps", self.record_steps, 1)
        if self.kinds != "auto":
            _check_count("kinds", self.kinds, 1)
        _check_choice("kind", self.kind, KINDS)
        _check_choice("ranges", self.ranges, RANGES)
        _check_choice("recorder", self.recorder, RECORDERS)


def from_environment(environ: Mapping[str, str]) -> Settings:
    """Reads ETUDE_RECORD_*, and the command in the folder; ValueError names the invalid setting."""
    values: Dict[str, object] = {"directory": ""}
    for name, (member, read) in _VARIABLES.items():
        if name not in environ:
            continue
        try:
            values[member] = read(environ[name])
        except ValueError as error:
            raise ValueError(f"{name}: found {environ[name]!r}, expected {error}") from None
    values["command"] = _command(os.path.join(str(values["directory"]), _COMMAND_FILE))
    return Settings(**values)  # type: ignore[arg-type]


def job_name() -> Optional[str]:
    """Returns an equal text in all ranks that a launcher started together; None without a launcher."""
    if "WORLD_SIZE" not in os.environ:
        return None
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    return ":".join(os.environ.get(name, "") for name in names)


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _kinds(text: str) -> Union[int, str]:
    return text if text == "auto" else _count(text)


def _switch(text: str) -> bool:
    return text == "1"


def _command(path: str) -> List[str]:
    """Reads the program's command line, stored by `etude record` in a file because it may exceed the size of a
    variable.
    """
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except OSError:
        return []
    except ValueError:
        value = None
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError(f"{path}: expected a JSON list of texts")
    return value


# Variables set by `etude record`: the setting and its parser.
_VARIABLES: Dict[str, Tuple[str, Callable[[str], object]]] = {
    "ETUDE_RECORD_DIR": ("directory", str),
    "ETUDE_RECORD_WARMUP": ("warmup", _count),
    "ETUDE_RECORD_STEPS": ("steps", _count),
    "ETUDE_RECORD_RECORD_STEPS": ("record_steps", _count),
    "ETUDE_RECORD_KINDS": ("kinds", _kinds),
    "ETUDE_RECORD_KIND": ("kind", str),
    "ETUDE_RECORD_RANGES": ("ranges", str),
    "ETUDE_RECORD_RECORDER": ("recorder", str),
    "ETUDE_RECORD_LIBRARY": ("library", str),
    "ETUDE_RECORD_MEMORY": ("memory", _switch),
    "ETUDE_RECORD_INDEX_VALUES": ("index_values", _count),
    "ETUDE_RECORD_MODULES": ("modules", _switch),
    "ETUDE_RECORD_CALLBACK_COST": ("callback_cost", _switch),
    "ETUDE_RECORD_JOB": ("job", str),
    "ETUDE_RECORD_VERSION": ("etude_version", str),
}


def _check_count(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: found {value!r}, expected a whole number >= {least}")


def _check_choice(name: str, value: str, choices: tuple) -> None:
    if value not in choices:
        raise ValueError(f"{name}: found {value!r}, expected one of {', '.join(choices)}")
