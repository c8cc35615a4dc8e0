"""Where what is built for one torch lies in the user's cache, and what it is built from.

    ETUDE_CACHE_DIR      the cache (default: $XDG_CACHE_HOME/etude, else ~/.cache/etude)

Imports nothing of Etude: recorded programs look here for the recorder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import re
import stat
from dataclasses import dataclass
from typing import Iterator, Optional, Tuple

_PACKAGE = pathlib.Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Product:
    """What is built. `target` and `path`: in CMake and in the build folder; `sources`: patterns."""

    name: str
    target: str
    path: str
    sources: Tuple[str, ...]


TOOL = Product(
    "etude-torch", "etude_torch_tool", "bin/etude-torch", ("CMakeLists.txt", "cmake/**/*", "src/**/*")
)
RECORDER = Product(
    "etude-recorder",
    "etude_recorder",
    "lib/etude/libetude_recorder.so",
    (
        "CMakeLists.txt",
        "cmake/**/*",
        "src/base/**/*",
        "src/torch/recorder/*",
        "src/formats/native/capture_*",
        "src/formats/pytorch_et/integer_*",
        "src/trace/words/comm_backend.h",
        "src/trace/words/operator_name.h",
    ),
)


def source() -> pathlib.Path:
    """The sources: those in the wheel, or the tree that this package is part of."""
    tree = _PACKAGE.parent.parent
    inside = _PACKAGE / "torch_source"
    if not inside.is_dir() and (tree / "src/torch").is_dir() and (tree / "CMakeLists.txt").exists():
        return tree
    return inside


def cache() -> pathlib.Path:
    named = os.environ.get("ETUDE_CACHE_DIR")
    if named:
        return pathlib.Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base).absolute() / "etude"


def folder(product: Product, root: str, version: str) -> pathlib.Path:
    """Where the product for the torch `version` in the folder `root` is, once it is built.

    Its name says the versions, and by a checksum where torch is and what is compiled, which both
    count.
    """
    facts = hashlib.sha256(os.fsencode(os.path.realpath(root)))
    tree = source()
    for path in _files(tree, product):
        facts.update(str(path.relative_to(tree)).encode())
        facts.update(path.read_bytes())
    safe = re.sub(r"[^A-Za-z0-9.+_-]", "_", version)
    return cache() / f"{product.name}-{_version()}-torch-{safe}-{facts.hexdigest()[:12]}"


class Unsafe(OSError):
    """What is in the cache may have been put there by somebody else; the text says why."""


def built(product: Product, root: str, version: str) -> Optional[pathlib.Path]:
    """The product if it is in the cache. Raises Unsafe where somebody else may have put it there."""
    path = folder(product, root, version) / pathlib.PurePath(product.path).name
    if not path.exists():
        return None
    close_to_others(path.parent.parent)
    for part in (path.parent.parent, path.parent, path):
        _check_own(part)
    return path


def close_to_others(path: pathlib.Path) -> None:
    """Takes the right to write into a folder from all others, where it is this user's."""
    with contextlib.suppress(OSError):
        about = os.stat(path)
        if about.st_uid == os.geteuid() and about.st_mode & 0o022 and not about.st_mode & stat.S_ISVTX:
            os.chmod(path, stat.S_IMODE(about.st_mode) & ~0o022)


def _check_own(path: pathlib.Path) -> None:
    """Raises Unsafe unless only this user, or root, can have written there."""
    about = os.stat(path)
    if about.st_uid not in (os.geteuid(), 0):
        raise Unsafe(f"{path}: belongs to another user, expected this one")
    # In a folder such as /tmp nobody can replace what others have.
    if about.st_mode & 0o022 and not about.st_mode & stat.S_ISVTX:
        raise Unsafe(f"{path}: others can write there (chmod go-w)")


def _files(tree: pathlib.Path, product: Product) -> Iterator[pathlib.Path]:
    found = {path for pattern in product.sources for path in tree.glob(pattern)}
    for path in sorted(found):
        if path.is_file():
            yield path


def _version() -> str:
    facts: dict = {}
    exec((_PACKAGE / "_version.py").read_text(), facts)
    return str(facts["__version__"])
