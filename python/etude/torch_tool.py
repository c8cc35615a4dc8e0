"""Builds and runs etude-torch, the part of Etude that needs libtorch, for the torch that is here.

A wheel cannot hold it: libtorch's C++ interface differs between versions. The first command that needs
it builds it from the sources in the wheel, into a folder of the user's cache that is named after the
versions of Etude and torch; the next ones run what is there.

    ETUDE_CACHE_DIR      the cache (default: $XDG_CACHE_HOME/etude, else ~/.cache/etude)
    ETUDE_TORCH_PYTHON   a Python that has torch (default: the one that Etude is installed in)
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Iterator, NoReturn, Sequence

from ._version import __version__

SOURCE = pathlib.Path(__file__).resolve().parent / "torch_source"
UNAVAILABLE = 4  # exit code: this machine cannot do it

# Headers that the build needs, and the Debian packages that have them.
HEADERS = {
    "CLI/CLI.hpp": "libcli11-dev",
    "fmt/format.h": "libfmt-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "protozero/pbf_reader.hpp": "libprotozero-dev",
    "simdjson.h": "libsimdjson-dev",
    "tl/expected.hpp": "libexpected-dev",
    "zlib.h": "zlib1g-dev",
    "zstd.h": "libzstd-dev",
}
FIND_TORCH = """
import importlib.util, os, sys
spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None: sys.exit(0)
root = os.path.dirname(spec.origin)
facts = {}
exec(open(os.path.join(root, "version.py")).read(), facts)
print(root, facts["__version__"], sep="\\n")
"""


def main(arguments: Sequence[str]) -> NoReturn:
    """Becomes etude-torch with these arguments."""
    try:
        program = str(find_or_build())
    except KeyboardInterrupt:
        sys.exit(130)
    os.execv(program, [program, *arguments])


def find_or_build() -> pathlib.Path:
    """The program for this torch; built if it is not in the cache."""
    python = os.environ.get("ETUDE_TORCH_PYTHON") or sys.executable
    root, version = find_torch(python)
    folder = cache() / key(root, version)
    program = folder / "etude-torch"
    if program.exists():
        return program
    if not SOURCE.is_dir():
        fail(f"found no sources at {SOURCE}, expected those of a wheel")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(folder.name + ".lock")):
            if not program.exists():
                build(folder, python, version)
    except OSError as error:
        fail(f"{error}; ETUDE_CACHE_DIR says where to build instead")
    return program


def find_torch(python: str) -> tuple[str, str]:
    """Folder and version of this Python's torch, which is not imported."""
    try:
        done = subprocess.run([python, "-c", FIND_TORCH], capture_output=True, text=True, check=True)
        root, version = done.stdout.splitlines()[-2:]
    except (OSError, ValueError, subprocess.CalledProcessError):
        fail(
            f"this command needs PyTorch, and {python} has none; `pip install torch` there, or set "
            "ETUDE_TORCH_PYTHON to a Python that has it"
        )
    return root, version


def cache() -> pathlib.Path:
    named = os.environ.get("ETUDE_CACHE_DIR")
    if named:
        return pathlib.Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base).absolute() / "etude"


def key(root: str, version: str) -> str:
    """Names what is built: by versions, and by where torch is and what is compiled, which both count."""
    facts = hashlib.sha256(os.fsencode(os.path.realpath(root)))
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file():
            facts.update(str(path.relative_to(SOURCE)).encode())
            facts.update(path.read_bytes())
    safe = re.sub(r"[^A-Za-z0-9.+_-]", "_", version)
    return f"etude-{__version__}-torch-{safe}-{facts.hexdigest()[:12]}"


@contextlib.contextmanager
def locked(path: pathlib.Path) -> Iterator[None]:
    """Holds the lock of this file: of several processes one builds, the others wait for it."""
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that builds etude-torch")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(folder: pathlib.Path, python: str, version: str) -> None:
    """Builds beside `folder`, and gives it its name when it is complete."""
    check_tools()
    log = folder.with_name(folder.name + ".log")
    say(
        f"building etude-torch for torch {version}, once, in {folder.parent}; this takes some "
        f"minutes (log: {log})"
    )
    began = time.monotonic()
    work = pathlib.Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
    try:
        ninja = shutil.which("ninja") is not None
        # Ninja has a pool for files that take gigabytes to compile; make has not.
        jobs = available_cores() if ninja else min(2, available_cores())
        configure = [
            *("cmake", "-S", str(SOURCE), "-B", str(work / "build")),
            *("-G", "Ninja" if ninja else "Unix Makefiles"),
            *("-DCMAKE_BUILD_TYPE=Release", "-DETUDE_TESTS=OFF", "-DETUDE_BENCH=OFF", "-DETUDE_CHARTS=OFF"),
            f"-DETUDE_TORCH_PYTHON={python}",
        ]
        target = ["--target", "etude_torch_tool", "--parallel", str(jobs)]
        with open(log, "wb") as out:
            run(configure, out)
            run(["cmake", "--build", str(work / "build"), *target], out)
        (work / "done").mkdir()
        os.replace(work / "build" / "bin" / "etude-torch", work / "done" / "etude-torch")
        os.replace(work / "done", folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"built in {time.monotonic() - began:.0f} s")


def check_tools() -> None:
    """Fails with all that is missing at once."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or "c++"
    missing = [
        f"{tool} ({package})"
        for tool, package in (("cmake", "cmake"), ("pkg-config", "pkg-config"), (compiler, "g++"))
        if shutil.which(tool.split()[0]) is None
    ]
    if shutil.which("ninja") is None and shutil.which("make") is None:
        missing.append("ninja (ninja-build) or make")
    if shutil.which(compiler.split()[0]) is not None:
        missing += [f"{header} ({HEADERS[header]})" for header in missing_headers(compiler)]
    if missing:
        fail(
            "building etude-torch needs what is not here: " + ", ".join(missing)
            + "; in brackets the Debian packages"
        )


def missing_headers(compiler: str) -> list[str]:
    lines = [f"#if !__has_include(<{header}>)\nmissing {header}\n#endif" for header in HEADERS]
    done = subprocess.run(
        [*compiler.split(), "-E", "-P", "-x", "c++", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
    )
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("missing ")]


def run(command: list[str], log: object) -> None:
    done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT)  # type: ignore[call-overload]
    if done.returncode == 0:
        return
    path = log.name  # type: ignore[attr-defined]
    lines = pathlib.Path(path).read_text(errors="replace").splitlines()
    errors = [line for line in lines if re.search(r"error|not found|Could not|No torch", line, re.I)]
    shown = "\n".join((errors or lines)[:12])
    fail(f"building etude-torch failed at `{command[0]} {command[1]}`:\n{shown}\nlog: {path}")


def available_cores() -> int:
    return len(os.sched_getaffinity(0))


def say(text: str) -> None:
    print(f"etude: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> NoReturn:
    say(text)
    sys.exit(UNAVAILABLE)
