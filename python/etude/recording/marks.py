"""Mark of a capture whose command was run by this user on this machine. `etude compare --run` runs other commands only
on request.

It is an HMAC-SHA-256 of the job, its command and, if the command depends on it, the working folder. The key is a file
that only the user can read, $XDG_STATE_HOME/etude/mark.key or ~/.local/state/etude/mark.key; the first recording
creates it. src/cli/record/own_mark.cc checks marks.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import stat
from typing import Optional, Sequence

_KEY_FILE = "mark.key"
_KEY_BYTES = 32
_FORMAT = b"etude-mark 1\n"


class NoKey(Exception):
    """There is no private key; the text contains the reason."""


def mark(job: Optional[str], command: Sequence[str], folder: Optional[str]) -> str:
    """Returns the mark of a job whose command ran in `folder` (None: unknown). Raises NoKey."""
    return hmac.new(_key(), _text(job, command, folder), hashlib.sha256).hexdigest()


def working_folder() -> Optional[str]:
    """Returns the working folder of the process; None if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _text(job: Optional[str], command: Sequence[str], folder: Optional[str]) -> bytes:
    place = os.fsencode(folder or "") if _depends_on_folder(command) else b""
    words = [(job or "").encode("utf-8", "replace"), place]
    words += [word.encode("utf-8", "replace") for word in command]
    return _FORMAT + b"".join(b"%d:%b" % (len(word), word) for word in words)


def _depends_on_folder(command: Sequence[str]) -> bool:
    """Returns whether the command may run another program in another folder: all commands except `python
    /path/to/train.py` and similar ones.
    """
    program = next((i for i, word in enumerate(command) if word.endswith(".py")), None)
    if program is None or not command[program].startswith("/"):
        return True
    if "/" in command[0] and not command[0].startswith("/"):
        return True
    # Modules (-m) and code (-c) are searched, or import others, in the working folder.
    return any(
        word.startswith("-") and not word.startswith("--") and ("m" in word or "c" in word)
        for word in command[1:program]
    )


def _state_folder() -> str:
    base = os.environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    if not base.startswith("/"):
        raise NoKey("this user has no home folder")
    return os.path.join(base, "etude")


def _key() -> bytes:
    folder = _state_folder()
    path = os.path.join(folder, _KEY_FILE)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.path.lexists(path):
            _make_key(folder, path)
        return _read_key(folder, path)
    except OSError as error:
        raise NoKey(f"{path}: {error.strerror or error}") from error


def _make_key(folder: str, path: str) -> None:
    """Creates a key. If several processes do so, the first one's key is kept."""
    part = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.write(handle, os.urandom(_KEY_BYTES))
        finally:
            os.close(handle)
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        os.remove(part)


def _read_key(folder: str, path: str) -> bytes:
    about = os.stat(folder)
    if about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise NoKey(f"{folder}: found write permission for other users, expected none")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise NoKey(f"{path}: found a file that other users can access, expected mode 0600")
        key = os.read(handle, _KEY_BYTES + 1)
    finally:
        os.close(handle)
    if len(key) != _KEY_BYTES:
        raise NoKey(f"{path}: found {len(key)} bytes, expected {_KEY_BYTES}")
    return key
