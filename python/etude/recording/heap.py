"""Adaptation of the C library's heap to the program."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any, Dict, List

_LEAST = 64 << 10
_MOST = 64 << 20  # glibc's maximum threshold is half of this
_STEP = 4096  # resolution of the result
_IS_MAPPED = 2  # flag in the word before a block


@functools.lru_cache(maxsize=1)
def facts() -> Dict[str, int]:
    """Returns `mmap_threshold`: the size from which blocks are mapped instead of taken from the heap.

    glibc raises it to the largest mapped block that was freed (mallopt(3), M_MMAP_THRESHOLD), and returns free memory
    beyond twice this size, which determines the page faults of a step. No call returns it, so it is found by trial
    allocations. Empty with another allocator, and if no thread can be started, as in exit handlers of Python 3.12.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")
        if not hasattr(libc, "gnu_get_libc_version"):
            return {}
        in_use = ctypes.CDLL(None)
        if _address(libc.malloc) != _address(in_use.malloc):
            return {}
    except (OSError, AttributeError):
        return {}
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = libc.free.argtypes = [ctypes.c_size_t]
    found: List[int] = []
    # A new thread has a separate heap. In the program's heap, a block that fits into free memory is never mapped,
    # however large.
    thread = threading.Thread(target=_search, args=(libc, found))
    try:
        thread.start()
    except RuntimeError:
        return {}
    thread.join()
    return {"mmap_threshold": found[0]} if found else {}


def _search(libc: Any, found: List[int]) -> None:
    """Frees blocks only at the end, because that would make room. Touches no memory, so that none is used. Never frees
    mapped blocks, which would raise the threshold.
    """
    taken: List[int] = []
    low, high = _LEAST, _MOST
    while high - low > _STEP:
        middle = (low + high) // 2
        block = libc.malloc(middle)
        if not block:
            break
        if _is_mapped(block):
            high = middle
        else:
            low = middle
            taken.append(block)
    else:
        found.append(high)
    for block in reversed(taken):
        libc.free(block)


def _address(function: object) -> object:
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]


def _is_mapped(block: int) -> bool:
    word = ctypes.sizeof(ctypes.c_size_t)
    return bool(ctypes.c_size_t.from_address(block - word).value & _IS_MAPPED)
