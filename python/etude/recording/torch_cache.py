"""Location in the user's cache of builds for one torch, and their sources.

    ETUDE_CACHE_DIR      the cache (default: $XDG_CACHE_HOME/etude, else ~/.cache/etude)

Imports nothing of Etude, because recorded programs use it to find the recorder.
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
    """A build product. `target` and `path`: in CMake and in the build folder; `sources`: patterns."""

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
    """Returns the sources: in the wheel, or the tree that contains this package."""
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
    """Returns the folder of the product for the torch `version` in the folder `root`.

    Its name contains the versions and a checksum of torch's location and the compiled sources.
    """
    facts = hashlib.sha256(os.fsencode(os.path.realpath(root)))
    tree = source()
    for path in _files(tree, product):
        facts.update(str(path.relative_to(tree)).encode())
        facts.update(path.read_bytes())
    safe = re.sub(r"[^A-Za-z0-9.+_-]", "_", version)
    return cache() / f"{product.name}-{_version()}-torch-{safe}-{facts.hexdigest()[:12]}"


class Unsafe(OSError):
    """Another user may have written to the cache; the text contains the reason."""


def built(product: Product, root: str, version: str) -> Optional[pathlib.Path]:
    """Returns the product if it is in the cache. Raises Unsafe if another user may have put it there."""
    path = folder(product, root, version) / pathlib.PurePath(product.path).name
    if not path.exists():
        return None
    close_to_others(path.parent.parent)
    for part in (path.parent.parent, path.parent, path):
        _check_own(part)
    return path


def close_to_others(path: pathlib.Path) -> None:
    """Removes write permissions of other users from a folder that this user owns."""
    with contextlib.suppress(OSError):
        about = os.stat(path)
        if about.st_uid == os.geteuid() and about.st_mode & 0o022 and not about.st_mode & stat.S_ISVTX:
            os.chmod(path, stat.S_IMODE(about.st_mode) & ~0o022)


def _check_own(path: pathlib.Path) -> None:
    """Raises Unsafe unless only this user, or root, can have written there."""
    about = os.stat(path)
    if about.st_uid not in (os.geteuid(), 0):
        raise Unsafe(f"{path}: found a file of another user, expected this user")
    # In a sticky folder such as /tmp nobody can replace the files of others.
    if about.st_mode & 0o022 and not about.st_mode & stat.S_ISVTX:
        raise Unsafe(f"{path}: found write permission for other users, expected none (chmod go-w)")


def _files(tree: pathlib.Path, product: Product) -> Iterator[pathlib.Path]:
    found = {path for pattern in product.sources for path in tree.glob(pattern)}
    for path in sorted(found):
        if path.is_file():
            yield path


def _version() -> str:
    facts: dict = {}
    exec((_PACKAGE / "_version.py").read_text(), facts)
    return str(facts["__version__"])
