"""What a program with ETUDE_RECORD in its environment is to record, and when."""

from __future__ import annotations

import difflib
import os
import re
import signal
import sys
from dataclasses import dataclass
from typing import Callable, Dict, Optional

from .settings import KINDS, RANGES, RECORDERS, Settings, job_name

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS.update({unit + "i": 1024**power for power, unit in enumerate("KMGT", start=1)})


@dataclass(frozen=True)
class DutySettings:
    """Recordings of a program that simply runs.

    directory: where they go, a folder each. every: every so many steps one is made; 0: none. signal:
    one is made after this signal; None: none. steps: steps of a recording. keep: so many of the newest
    recordings stay; None: all. max_bytes: what this process may write in all. max_seconds: how
    long it records; None: no limit. The rest is as in Settings.
    """

    directory: str
    every: int = 0
    signal: Optional[int] = None
    steps: int = 1
    keep: Optional[int] = None
    max_bytes: Optional[int] = None
    max_seconds: Optional[int] = None
    recorder: str = "native"
    library: Optional[str] = None
    kind: str = "auto"
    ranges: str = "auto"
    memory: bool = False
    index_values: int = 0
    modules: bool = True

    def __post_init__(self) -> None:
        if not self.directory:
            raise ValueError("found no folder, expected dir=FOLDER")
        if not self.every and self.signal is None:
            raise ValueError("found neither every=N nor signal=NAME, expected when to record")


def parse(text: str) -> DutySettings:
    """Reads `name=value,name=value`; ValueError says what was found and expected."""
    values: Dict[str, object] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals:
            raise ValueError(f"found {part!r}, expected NAME=VALUE")
        if name not in _READERS:
            near = difflib.get_close_matches(name, _READERS, 1)
            hint = f"; did you mean {near[0]}?" if near else f", expected one of {', '.join(_READERS)}"
            raise ValueError(f"found no setting {name!r}{hint}")
        field = "directory" if name == "dir" else name
        if field in values:
            raise ValueError(f"found {name} twice")
        try:
            values[field] = _READERS[name](value)
        except ValueError as error:
            raise ValueError(f"{name}: found {value!r}, expected {error}") from None
    return DutySettings(**{"directory": "", **values})  # type: ignore[arg-type]


def settings_of(duty: DutySettings) -> Settings:
    """Of one of its recordings, whose folder is set when it is made."""
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


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise ValueError("a whole number >= 1")
    return int(text)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,15})([KMGT]i?)?B?", text)
    if not found or int(found[1]) < 1:
        raise ValueError("bytes, such as 500M or 2Gi")
    return int(found[1]) * _UNITS[found[2] or ""]


def _signal(text: str) -> int:
    name = text.upper()
    number = getattr(signal, name if name.startswith("SIG") else "SIG" + name, None)
    if not isinstance(number, signal.Signals) or number in (signal.SIGKILL, signal.SIGSTOP):
        raise ValueError("the name of a signal that a program can take, such as USR1")
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
    "every": _count,
    "signal": _signal,
    "steps": _count,
    "keep": _count,
    "max_bytes": _bytes,
    "max_seconds": _count,
    "recorder": _choice(RECORDERS),
    "library": str,
    "kind": _choice(KINDS),
    "ranges": _choice(RANGES),
    "index_values": _bytes,
    "memory": _switch,
    "modules": _switch,
}


def main() -> int:
    """Checks the settings that are the only argument."""
    try:
        parse(sys.argv[1])
    except ValueError as error:
        print(f"etude: record: --print-environment: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
