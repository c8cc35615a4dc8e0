"""Keeps a forked child able to exit after the parent has used the profiler."""

from __future__ import annotations

import contextlib
import ctypes


def skip_library_destructors() -> None:
    """Makes the regular exit of this process end without the destructors of native libraries.

    The profiler's library has a thread of its own that a forked child lacks; its destructor then
    waits for it for ever. Python's exit handlers and the flush of C streams still run. Does
    nothing where the C library has no `on_exit`.
    """
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        address = ctypes.cast(library._exit, ctypes.c_void_p)
        # Handlers run in reverse order: first the flush, then _exit, which gets the exit code.
        library.on_exit(address, None)
        flush = ctypes.cast(library.fflush, ctypes.c_void_p)
        library.__getattr__("__cxa_atexit")(flush, None, None)
