"""Etude turns PyTorch jobs into benchmarks: it records jobs, and reads and analyses traces.

import etude

with etude.record("capture"):
    for batch in batches:
        train(batch)

job = etude.open("capture")
print(etude.stats(job)["ops"])
job[0].to_pandas()

Recording is written in Python and imports torch on demand. Traces are read by the module `_core`, which is also
imported on demand. The functions in etude.commands run the program `etude`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__
from .errors import Error
from .errors import Warning as Warning
from .recording.context import RecordingError, RecordingWarning, record
from .results import Made

if TYPE_CHECKING:
    from ._core import (
        Column,
        Columns,
        Dependencies,
        Job,
        Report,
        Table,
        Trace,
        breakdown,
        convert,
        critical_path,
        diff,
        link,
        memory,
        stats,
    )
    from ._core import open as open
    from ._core import slice as slice
    from .commands import (
        Answer,
        benchmark,
        calibrate,
        compare,
        generate,
        info,
        replay,
        report,
        simulate,
        sweep,
        timeline,
        validate,
        whatif,
    )

# Without open, slice and Warning, so that `from etude import *` does not shadow Python's own.
__all__ = [
    "Answer",
    "Column",
    "Columns",
    "Dependencies",
    "Error",
    "Job",
    "Made",
    "RecordingError",
    "RecordingWarning",
    "Report",
    "Table",
    "Trace",
    "benchmark",
    "breakdown",
    "calibrate",
    "compare",
    "convert",
    "critical_path",
    "diff",
    "generate",
    "info",
    "link",
    "memory",
    "record",
    "replay",
    "report",
    "simulate",
    "stats",
    "sweep",
    "timeline",
    "validate",
    "whatif",
]
_NAMES = {*__all__, "open", "slice"}
_COMMANDS = {
    "Answer",
    "benchmark",
    "calibrate",
    "compare",
    "generate",
    "info",
    "replay",
    "report",
    "simulate",
    "sweep",
    "timeline",
    "validate",
    "whatif",
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'etude' has no attribute '{name}'")
    if name in _COMMANDS:
        from . import commands

        return getattr(commands, name)
    try:
        from . import _core
    except ImportError as error:
        raise ImportError(
            f"etude.{name}: missing module etude._core ({error}); build it with `pip install .`, "
            "or with -DETUDE_PYTHON=ON in CMake",
        ) from error
    return getattr(_core, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
