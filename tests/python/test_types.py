"""Type stubs: mypy --strict checks the package and a program that uses it."""

import pathlib
import subprocess
import sys

import pytest

import etude

pytest.importorskip("mypy")
PACKAGE = pathlib.Path(etude.__file__).parent
PROJECT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = """
import pathlib
import etude
from etude import Job, Trace, stats

opened = etude.open(pathlib.Path("x"), strict=True, jobs=2)
trace: Trace = opened[0] if isinstance(opened, Job) else opened
count: int = len(trace) + int(trace.nodes["start_ns"].values.sum())
name = trace.nodes["name"][3]
waits: list[tuple[int, str]] = trace.deps.of(3)
sources: list[str | Trace] = ["a", trace]
rows: list[dict[str, int | float | str | None]] = stats(sources)["ops"].to_dicts()
part, account = etude.slice(trace, op=["a", "b"], step=3)
etude.convert(part, "x.et", to="et")
same: bool | None = etude.diff(trace, "y").same
try:
    etude.breakdown(["a", "b"])
except etude.Error as error:
    code: str = error.code
with etude.record("job", steps=3) as recording:
    pass
reveal_type(part)
reveal_type(open("x").read())
"""

WRONG = """
import etude

etude.open(3)
etude.stats("x").nodes
etude.convert("x", "y", to="json")
etude.slice("x", op=1.5)
"""


def mypy(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", folder / "cache",
         "--config-file", PROJECT / "pyproject.toml", *arguments],
        cwd=folder, env={"MYPYPATH": str(PACKAGE.parent), "PATH": ""}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_programs_are_checked(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    lines = mypy(tmp_path, "program.py", "wrong.py").splitlines()
    notes = [line.partition(" note: ")[2] for line in lines if line.startswith("program.py")]
    assert notes == ['Revealed type is "etude._core.Trace"', 'Revealed type is "str"'], lines
    errors = [line.split(":")[:2] for line in lines if ": error:" in line]
    assert errors == [["wrong.py", number] for number in "4567"], lines


def test_the_package_is_checked(tmp_path):
    said = mypy(tmp_path, "-p", "etude")
    assert said.startswith("Success"), said
