"""Settings of a program with ETUDE_RECORD in its environment."""

from __future__ import annotations

import difflib
import os
import re
import signal
import sys
from dataclasses import dataclass
from typing import Callable, Dict, Optional

from .settings import KINDS, RANGES, RECORDERS, Settings, job_name

# Units of the program's options (src/base/text/quantity.cc), also without B.
_UNITS = {"": 1, "B": 1, "kB": 1000}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS.update(dict.fromkeys((_letter, _letter + "B"), 1000**_power))
    _UNITS.update(dict.fromkeys((_letter + "i", _letter + "iB"), 1024**_power))
_MOST_BYTES = 2**63 - 1


@dataclass(frozen=True)
class DutySettings:
    """Settings of repeated recordings.

    directory: parent of the recordings' folders. every: interval in steps; 0: none. signal: signal that triggers a
    recording; None: none. steps: steps per recording. keep: number of newest recordings to keep; None: all. max_bytes:
    total bytes that this process may write. max_seconds: total recording time; None: no limit. Other members are as in
    Settings.
    """

    directory: str
    every: int = 0
    signal: Optional[int] = None
    steps: int = Settings.record_steps
    keep: Optional[int] = None
    max_bytes: Optional[int] = None
    max_seconds: Optional[int] = None
    recorder: str = Settings.recorder
    library: Optional[str] = None
    kind: str = Settings.kind
    ranges: str = Settings.ranges
    memory: bool = Settings.memory
    index_values: int = Settings.index_values
    modules: bool = Settings.modules

    def __post_init__(self) -> None:
        if not self.directory:
            raise ValueError("missing folder, expected dir=FOLDER")
        if not self.every and self.signal is None:
            raise ValueError("missing every=N or signal=NAME")


def parse(text: str) -> DutySettings:
    """Parses `name=value,name=value`; ValueError contains what was found and expected."""
    values: Dict[str, object] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals:
            raise ValueError(f"found {part!r}, expected NAME=VALUE")
        if name not in _READERS:
            near = difflib.get_close_matches(name, _READERS, 1)
            hint = f"; did you mean {near[0]}?" if near else f", expected one of {', '.join(_READERS)}"
            raise ValueError(f"unknown setting {name!r}{hint}")
        field = "directory" if name == "dir" else name
        if field in values:
            raise ValueError(f"found {name} twice")
        try:
            values[field] = _READERS[name](value)
        except ValueError as error:
            raise ValueError(f"{name}: found {value!r}, expected {error}") from None
    return DutySettings(**{"directory": "", **values})  # type: ignore[arg-type]


def settings_of(duty: DutySettings) -> Settings:
    """Returns the settings of one recording, whose folder is set later."""
    return Settings(
        directory=duty.directory,
        record_steps=duty.steps,
        kind=duty.kind,
        ranges=duty.ranges,
        recorder=duty.recorder,
        library=duty.library,
        memory=duty.memory,
        index_values=duty.index_values,
        modules=duty.modules,
        command=list(getattr(sys, "orig_argv", sys.argv)),
        job=job_name(),
        etude_version=os.environ.get("ETUDE_RECORD_VERSION"),
    )


def _count(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
            raise ValueError(f"a whole number >= {least}")
        return int(text)

    return read


def _bytes(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        found = re.fullmatch(r"([0-9]{1,20})(?:\.([0-9]{1,20}))? *([A-Za-z]*)", text)
        if found and found[3] in _UNITS:
            behind = found[2] or ""
            count = int(found[1] + behind) * _UNITS[found[3]]
            size, rest = divmod(count, 10 ** len(behind))
            if rest == 0 and least <= size <= _MOST_BYTES:
                return size
        raise ValueError("bytes, such as 500M or 1.5GiB")

    return read


def _signal(text: str) -> int:
    name = text.upper()
    number = getattr(signal, name if name.startswith("SIG") else "SIG" + name, None)
    if not isinstance(number, signal.Signals) or number in (signal.SIGKILL, signal.SIGSTOP):
        raise ValueError("the name of a signal that a program can handle, such as USR1")
    return int(number)


def _choice(choices: tuple) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return read


def _switch(text: str) -> bool:
    return _choice(("on", "off"))(text) == "on"


_READERS: Dict[str, Callable[[str], object]] = {
    "dir": lambda text: os.path.abspath(text) if text else "",
    "every": _count(0),
    "signal": _signal,
    "steps": _count(1),
    "keep": _count(1),
    "max_bytes": _bytes(1),
    "max_seconds": _count(1),
    "recorder": _choice(RECORDERS),
    "library": str,
    "kind": _choice(KINDS),
    "ranges": _choice(RANGES),
    "index_values": _bytes(0),
    "memory": _switch,
    "modules": _switch,
}


def main() -> int:
    """Checks the settings given as the only argument."""
    try:
        parse(sys.argv[1])
    except ValueError as error:
        print(f"etude: record: --print-environment: {error}", file=sys.stderr)
        return 2
    return 0
