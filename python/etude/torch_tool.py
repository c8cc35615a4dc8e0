"""Builds the programs that need libtorch for the installed torch: etude-torch, which it also runs, and the recorder.

A wheel cannot contain them, because libtorch's C++ interface differs between versions. The first command that needs
one builds it from the sources in the wheel, or in the tree, into a folder of the user's cache that is named after the
versions of Etude and torch; later commands use it (recording/torch_cache.py).

    ETUDE_TORCH_PYTHON   a Python that has torch (default: the one that Etude is installed in)
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Iterator, NoReturn, Sequence

from .recording import torch_cache
from .recording.torch_cache import RECORDER, TOOL, Product

UNAVAILABLE = 4  # exit code: not supported by this machine

# Headers that the build needs, with their Debian packages.
HEADERS = {
    "CLI/CLI.hpp": "libcli11-dev",
    "fmt/format.h": "libfmt-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "protozero/pbf_reader.hpp": "libprotozero-dev",
    "simdjson.h": "libsimdjson-dev",
    "tl/expected.hpp": "libexpected-dev",
    "toml++/toml.h": "libtomlplusplus-dev",
    "yaml-cpp/yaml.h": "libyaml-cpp-dev",
    "zlib.h": "zlib1g-dev",
    "zstd.h": "libzstd-dev",
}
FIND_TORCH = """
import importlib.util, os, sys
sys.path = [p for p in sys.path if p]
spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None: sys.exit(0)
root = os.path.dirname(spec.origin)
facts = {}
exec(open(os.path.join(root, "version.py")).read(), facts)
print(root, facts["__version__"], sep="\\n")
"""


def main(arguments: Sequence[str]) -> NoReturn:
    """Replaces this process by etude-torch with these arguments."""
    try:
        program = str(find_or_build())
    except KeyboardInterrupt:
        sys.exit(130)
    os.execv(program, [program, *arguments])


def find_or_build(product: Product = TOOL, python: str | None = None) -> pathlib.Path:
    """Returns the product for the torch of this Python, building it if it is not in the cache."""
    python = python or os.environ.get("ETUDE_TORCH_PYTHON") or sys.executable
    root, version = find_torch(python)
    try:
        found = torch_cache.built(product, root, version)
    except torch_cache.Unsafe as error:
        fail(f"{error}; not run; set ETUDE_CACHE_DIR to another folder")
    if found is not None:
        return found
    folder = torch_cache.folder(product, root, version)
    if not torch_cache.source().is_dir():
        fail(f"missing sources at {torch_cache.source()}, expected those of a wheel")
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        torch_cache.close_to_others(folder.parent)
        with locked(folder.with_name(folder.name + ".lock"), product):
            if torch_cache.built(product, root, version) is None:
                build(product, folder, python, version)
    except OSError as error:
        fail(f"{error}; set ETUDE_CACHE_DIR to another folder")
    return folder / pathlib.PurePath(product.path).name


def prepare_recorder(fits: str) -> None:
    """Builds the native recorder before a program of this Python is recorded, unless the installed one fits. `fits` is
    the torch version of the installed one ("": there is none). Exits with UNAVAILABLE if it cannot be built; a
    Python without torch needs none.
    """
    try:
        _, version = read_torch(sys.executable)
    except LookupError:
        return
    if version != fits:
        find_or_build(RECORDER, sys.executable)


def build_recorder(python: str) -> None:
    """Builds the native recorder for the torch of `python` and prints its path."""
    resolved = shutil.which(python)
    if resolved is None:
        fail(f"found no Python {python}")
    print(find_or_build(RECORDER, resolved))


def find_torch(python: str) -> tuple[str, str]:
    try:
        return read_torch(python)
    except LookupError:
        fail(
            f"this command requires PyTorch, which is missing in {python}; run `pip install torch` there, or set "
            "ETUDE_TORCH_PYTHON to a Python with PyTorch"
        )


def read_torch(python: str) -> tuple[str, str]:
    """Returns folder and version of this Python's torch without importing it. LookupError if it has none."""
    try:
        done = subprocess.run([python, "-c", FIND_TORCH], capture_output=True, text=True, check=True)
        root, version = done.stdout.splitlines()[-2:]
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise LookupError(python) from error
    return root, version


@contextlib.contextmanager
def locked(path: pathlib.Path, product: Product) -> Iterator[None]:
    """Holds the lock of this file: one of several processes builds, the others wait."""
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that builds {product.name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(product: Product, folder: pathlib.Path, python: str, version: str) -> None:
    """Builds beside `folder`, and renames the result when it is complete."""
    check_tools(product)
    log = folder.with_name(folder.name + ".log")
    say(
        f"building {product.name} for torch {version}, once, in {folder.parent}; this takes some "
        f"minutes (log: {log})"
    )
    began = time.monotonic()
    work = pathlib.Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
    try:
        ninja = shutil.which("ninja") is not None
        # Ninja has a pool for files that take gigabytes to compile; make does not.
        jobs = available_cores() if ninja else min(2, available_cores())
        configure = [
            *("cmake", "-S", str(torch_cache.source()), "-B", str(work / "build")),
            *("-G", "Ninja" if ninja else "Unix Makefiles"),
            *("-DCMAKE_BUILD_TYPE=Release", "-DETUDE_TESTS=OFF", "-DETUDE_BENCH=OFF", "-DETUDE_CHARTS=OFF"),
            f"-DETUDE_TORCH_PYTHON={python}",
            "-DCMAKE_INSTALL_LIBDIR=lib",
        ]
        target = ["--target", product.target, "--parallel", str(jobs)]
        with open(log, "wb") as out:
            run(product, configure, out)
            run(product, ["cmake", "--build", str(work / "build"), *target], out)
        (work / "done").mkdir(mode=0o700)
        made = work / "build" / product.path
        made.chmod(0o755)  # not writable for others, regardless of umask
        os.replace(made, work / "done" / made.name)
        os.replace(work / "done", folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"built in {time.monotonic() - began:.0f} s")


def check_tools(product: Product) -> None:
    """Fails with a list of everything that is missing."""
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
            f"building {product.name} requires missing packages: " + ", ".join(missing)
            + " (Debian packages in brackets)"
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


def run(product: Product, command: list[str], log: object) -> None:
    done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT)  # type: ignore[call-overload]
    if done.returncode == 0:
        return
    path = log.name  # type: ignore[attr-defined]
    lines = pathlib.Path(path).read_text(errors="replace").splitlines()
    errors = [line for line in lines if re.search(r"error|not found|Could not|No torch", line, re.I)]
    shown = "\n".join((errors or lines)[:12])
    fail(f"building {product.name} failed at `{command[0]} {command[1]}`:\n{shown}\nlog: {path}")


def available_cores() -> int:
    return len(os.sched_getaffinity(0))


def say(text: str) -> None:
    print(f"etude: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> NoReturn:
    say(text)
    sys.exit(UNAVAILABLE)
