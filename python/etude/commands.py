"""Commands as functions: `etude.simulate("job", network="Ring(8):50GB/s,500ns")` runs `etude simulate job --network …
--json` and returns its answer, with the figures of the command line.

Options are keywords: `break_cycles=True` is --break-cycles, `straggler=["3:1.5", "4:2"]` is two --straggler. Runs the
program installed with the package, otherwise the first `etude` on the path.
"""

from __future__ import annotations

import html
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import frames
from .errors import Error
from .errors import Warning as EtudeWarning

if TYPE_CHECKING:
    from ._core import Job, Trace

    Path = Union[str, os.PathLike[str]]
    Source = Union[Path, Trace, Job]
    Sources = Union[Source, Sequence[Source]]
    Value = Union[bool, int, float, str, os.PathLike[str], Sequence[Union[int, float, str]], None]

CODES = {2: "usage", 3: "bad_input", 4: "unavailable", 5: "io", 70: "internal", 130: "interrupted"}
SHOWN_ROWS = 20  # rows of a table in a notebook


class Answer:
    """Result of a command: its --json document, and the path that it wrote.

    `ok` is True for exit code 0 and False for 1; `path` is the output, or None. Members are read by answer["key"];
    tables are converted to data frames by `to_pandas`.
    """

    def __init__(self, command: str, ok: bool, document: dict[str, Any], path: str | None) -> None:
        self.command = command
        self.ok = ok
        self.path = path
        self._document = document

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __contains__(self, key: object) -> bool:
        return key in self._document

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    @property
    def tables(self) -> list[str]:
        """Returns the keys of the members that are lists of rows."""
        return [key for key, value in self._document.items() if _is_table(value)]

    def to_json(self) -> dict[str, Any]:
        """Returns the whole document."""
        return self._document

    def to_pandas(self, key: str) -> Any:
        """Returns a table as a pandas DataFrame; unknown values are <NA>."""
        if not _is_table(self._document.get(key)):
            raise Error("usage", f"found no table '{key}', expected one of {', '.join(self.tables) or 'none'}")
        pandas = frames.library("pandas")
        return pandas.DataFrame(self._document[key]).convert_dtypes()

    def __repr__(self) -> str:
        made = f", wrote {self.path}" if self.path else ""
        return f"<etude.Answer of {self.command}: {'ok' if self.ok else 'no'}{made}; {', '.join(self._document)}>"

    def _repr_html_(self) -> str:
        facts = {key: value for key, value in self._document.items() if not isinstance(value, (dict, list))}
        parts = [_html_table(["", ""], [[key, value] for key, value in facts.items()])]
        for key in self.tables:
            rows = self._document[key]
            columns = list(dict.fromkeys(name for row in rows for name in row))
            parts.append(f"<b>{html.escape(key)}</b>")
            parts.append(_html_table(columns, [[row.get(name) for name in columns] for row in rows]))
        return "".join(parts)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(row, dict) for row in value)


def _html_table(columns: list[str], rows: list[list[Any]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape('–' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows[:SHOWN_ROWS]
    )
    more = f"<p>and {len(rows) - SHOWN_ROWS:,} more</p>" if len(rows) > SHOWN_ROWS else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def program() -> str:
    """Returns the path of the command `etude`. Raises etude.Error if it is missing."""
    own = pathlib.Path(sysconfig.get_path("scripts")) / "etude"
    found = os.environ.get("ETUDE_PROGRAM") or (str(own) if own.exists() else shutil.which("etude"))
    if found is None:
        raise Error("unavailable", "missing program etude, expected it in the package or on PATH")
    return found


def words_of(options: dict[str, Value]) -> list[str]:
    """Converts keywords to command line words."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.strip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (str, int, float, os.PathLike)):
            words += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
        else:
            for one in value:
                words += [option, str(one)]
    return words


def _path_of(source: Source) -> str:
    path = source if isinstance(source, (str, os.PathLike)) else source.path
    if path is None:
        raise Error("usage", "found a trace without a file, expected a file: write it with etude.convert first")
    return os.fspath(path)


def paths_of(sources: Sources) -> list[str]:
    """Returns the files or folders of traces and jobs."""
    if isinstance(sources, (list, tuple)):
        return [_path_of(source) for source in sources]
    return [_path_of(sources)]  # type: ignore[arg-type]


def run(command: str, words: Sequence[str], *, path: Path | None = None, has_json: bool = True) -> Answer:
    """Runs `etude COMMAND WORDS… --json`. Its warnings become etude.Warning, its errors etude.Error."""
    running = subprocess.Popen(
        [program(), command, *words, *(["--json"] if has_json else [])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        printed, said = running.communicate()
    except KeyboardInterrupt:
        running.send_signal(signal.SIGINT)
        running.wait()
        raise
    lines = said.splitlines()
    prefix = "etude: "
    for line in lines:
        if line.startswith(prefix + "warning: "):
            warnings.warn(line[len(prefix + "warning: ") :], EtudeWarning, stacklevel=3)
    if running.returncode not in (0, 1):
        complaints = [line[len(prefix) :] for line in lines if line.startswith(prefix)]
        message = complaints[-1] if complaints else (lines[-1] if lines else f"ended with {running.returncode}")
        raise Error(CODES.get(running.returncode, "internal"), message)
    document = json.loads(printed) if has_json and printed.strip() else {}
    if not isinstance(document, dict):
        document = {"rows": document}
    made = None if path is None else os.fspath(path)
    return Answer(command, running.returncode == 0, document, made)


def info(source: Sources, **options: Value) -> Answer:
    """Runs `etude info`: facts of a trace or capture folder, and whether it can be trusted."""
    return run("info", paths_of(source) + words_of(options))


def validate(source: Sources, **options: Value) -> Answer:
    """Runs `etude validate`: the rules that traces violate; `ok` if there are none."""
    return run("validate", paths_of(source) + words_of(options))


def generate(what: str, model: Path, output: Path, **options: Value) -> Answer:
    """Runs `etude generate`: writes the traces of a pattern's or model's step; open them with
    `etude.open(answer.path)`.

    `options` are the plan and the device: dp=8, tp=2, device="h100".
    """
    return run("generate", [what, os.fspath(model), "-o", os.fspath(output), *words_of(options)], path=output)


def simulate(job: Sources, *, network: Path | None = None, output: Path | None = None, **options: Value) -> Answer:
    """Runs `etude simulate`: the time of the job's step on a machine, with its breakdown.

    `network` is a text, "Ring(8):50GB/s,500ns", or a file: ASTRA-sim's, an InfraGraph or a list of links. Without it,
    with times="recorded", nodes keep their recorded times; `machine` is a file of `calibrate`, instead of a network,
    and with model="etude-1" the network in it.
    `output` is a folder for the simulated job. The answer contains step_ns and the tables ranks, times, groups, path,
    …; `ok` is True if all ranks finished. Options add tables: `energy`, a file of power, adds energy and energy_ranks,
    sensitivity=True adds sensitivity, `noise` and `slow_ranks` add variation, `mtbf` adds failures, and
    `capacity` adds capacity.
    """
    words = paths_of(job) + words_of({"network": network, **options})
    return run("simulate", words + (["-o", os.fspath(output)] if output is not None else []), path=output)


def calibrate(output: Path, **options: Value) -> Answer:
    """Runs `etude calibrate`: measures this machine's communications and computations into the file `output`.
    Requires torch.

    `ranks`, "2,4", are the numbers of ranks. The answer's table `communication` has a row per type and number of
    ranks, `computation` one per type and dtype, and `network` is fitted to the former; `ok` is False if something was
    too noisy to be written. With `operators`, a recorded job, it measures
    the operators of that job instead, and has a table `operators`.
    """
    return run("calibrate", ["-o", os.fspath(output), *words_of(options)], path=output)


def whatif(job: Sources, output: Path, **options: Value) -> Answer:
    """Runs `etude whatif`: writes an edited recorded or generated job into the folder `output`.

    `dp` is the number of data-parallel ranks, and `tp` of tensor-parallel ones; `batch`, `sequence`, `hidden`, `heads`,
    `ffn` and `vocab` are sizes. The answer has the `edits` with what they changed. With `measure=True`, which requires
    torch, operators with other sizes are measured; `operators` is a table of their times. Other edits of recorded jobs
    are `overlap="off"`, `compress=4`, `dtype="bfloat16"`, `fuse=["aten::add,aten::relu"]`, … A job of `generate` takes
    all options of its plan, such as `cp`, `layers` and `keep="global-batch"`; its answer has the plan `before` and
    `after`.
    """
    return run("whatif", [*paths_of(job), "-o", os.fspath(output), *words_of(options)], path=output)


def sweep(spec: Path | str, output: Path, **options: Value) -> Answer:
    """Runs `etude sweep`: simulates every combination of a TOML file; results are kept in the folder `output`.

    The answer's table `points` has a row per combination.
    """
    return run("sweep", [os.fspath(spec), "-o", os.fspath(output), *words_of(options)], path=output)


def report(source: Sources, output: Path, **options: Value) -> Answer:
    """Runs `etude report`: writes one HTML page about traces or jobs."""
    return run("report", [*paths_of(source), "-o", os.fspath(output), *words_of(options)], path=output)


def timeline(source: Sources, output: Path, **options: Value) -> Answer:
    """Runs `etude timeline`: writes traces as a timeline for Perfetto."""
    return run("timeline", [*paths_of(source), "-o", os.fspath(output), *words_of(options)], path=output)


def replay(source: Source, **options: Value) -> Answer:
    """Runs `etude replay`: runs a recorded step's operators again. Requires torch."""
    return run("replay", paths_of(source) + words_of(options))


def compare(source: Source, **options: Value) -> Answer:
    """Runs `etude compare`: compares a capture's original step with its replay; run=True runs both again."""
    return run("compare", paths_of(source) + words_of(options))


def benchmark(source: Source, output: Path, **options: Value) -> Answer:
    """Runs `etude benchmark`: writes a recorded step as programs that need only PyTorch. Requires torch."""
    words = [*paths_of(source), "-o", os.fspath(output), *words_of(options)]
    return run("benchmark", words, path=output, has_json=False)
