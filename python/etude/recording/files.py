"""Writes files of a capture folder atomically under their final names."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from typing import Any, Callable, Iterator, Optional

_LOCK = ".lock"
JOB = "job.json"
# A disk with fewer free bytes is considered full.
_LITTLE = 1 << 20
_token = os.urandom(8).hex()


def _draw_token() -> None:
    """Runs in a forked child."""
    global _token
    _token = os.urandom(8).hex()


os.register_at_fork(after_in_child=_draw_token)


def process() -> str:
    """Returns an identifier of this process that is unique across machines and containers, which may reuse process ids."""
    return f"{os.getpid()}-{_token}"


def temporary(directory: str, name: str) -> str:
    """Returns a hidden name next to the final one, unique to the process."""
    return os.path.join(directory, f".tmp-{process()}-{name}")


def check_writable(directory: str) -> None:
    """Raises OSError if the folder is not writable."""
    path = temporary(directory, "check")
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    os.remove(path)


def write_json(directory: str, name: str, value: Any) -> None:
    """Writes a small document atomically under its final name."""
    path = temporary(directory, name)
    try:
        with open(path, "w", encoding="utf-8") as out:
            json.dump(value, out, indent=1, ensure_ascii=False)
            out.write("\n")
        os.replace(path, os.path.join(directory, name))
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(path)
        raise


def overwrite_json(directory: str, name: str, value: Any) -> None:
    """Overwrites an existing document without a new file."""
    with open(os.path.join(directory, name), "r+", encoding="utf-8", opener=_open_unlinked) as out:
        before = os.fstat(out.fileno()).st_size
        text = json.dumps(value, ensure_ascii=False)
        out.write(text + " " * (before - len(text.encode("utf-8"))))


def _open_unlinked(path: str, flags: int) -> int:
    """Opens a file of a folder, but not a link, which may lead anywhere."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def is_full(directory: str, error: BaseException) -> bool:
    """Returns whether `error` was caused by a full disk."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    # The observer and the profiler do not report failed writes: their files are truncated.
    with contextlib.suppress(OSError):
        space = os.statvfs(directory)
        return space.f_bavail * space.f_frsize < _LITTLE
    return False


def read_json(directory: str, name: str) -> Optional[dict]:
    """Reads a document; None if it is missing. ValueError if it is not a JSON object."""
    try:
        with open(os.path.join(directory, name), encoding="utf-8", opener=_open_regular) as file:
            document = json.load(file)
    except FileNotFoundError:
        return None
    except RecursionError:
        raise ValueError(f"{name}: found JSON that is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError(f"{name}: found invalid content, expected a JSON object")
    return document


def _open_regular(path: str, flags: int) -> int:
    """Opens an existing file. ValueError for a pipe or a device, which may never end."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError(f"{os.path.basename(path)}: found a pipe, a device or a folder, expected a file")
    return handle


def update_job(directory: str, change: Callable[[Optional[Any]], Any]) -> None:
    """Replaces job.json by the result of `change`; one process of the job at a time."""
    with locked(directory):
        write_json(directory, JOB, change(read_json(directory, JOB)))


def remove_temporaries(directory: str) -> None:
    """Removes temporary files of this process."""
    prefix = os.path.basename(temporary(directory, ""))
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if name.startswith(prefix):
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(directory, name))


def remove_lock(directory: str) -> None:
    """Removes the lock file of `locked` from a folder that is no longer written."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(directory, _LOCK))


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Excludes other processes of the job from such a block with this folder."""
    flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(os.path.join(directory, _LOCK), flags, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
