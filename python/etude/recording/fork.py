"""Keeps a forked child able to exit after the parent has used the profiler."""

from __future__ import annotations

import contextlib
import ctypes


def skip_library_destructors() -> None:
    """Makes regular exits of this process skip the destructors of native libraries.

    The profiler's library has a thread that a forked child lacks; its destructor then waits for it forever. Python's
    exit handlers and the flush of C streams still run. Has no effect if the C library lacks `on_exit`.
    """
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        address = ctypes.cast(library._exit, ctypes.c_void_p)
        # Handlers run in reverse order: first the flush, then _exit, which receives the exit code.
        library.on_exit(address, None)
        flush = ctypes.cast(library.fflush, ctypes.c_void_p)
        library.__getattr__("__cxa_atexit")(flush, None, None)
