"""How the C library's heap has adapted to the program."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any, Dict, List

_LEAST = 64 << 10
_MOST = 64 << 20  # glibc's threshold ends at half of that
_STEP = 4096  # of the answer
_IS_MAPPED = 2  # a flag in the word before a block


@functools.lru_cache(maxsize=1)
def facts() -> Dict[str, int]:
    """`mmap_threshold`: from how many bytes on a block is not taken from the heap but mapped.

    glibc raises it to the largest mapped block that was freed (mallopt(3), M_MMAP_THRESHOLD), and
    gives free memory back beyond twice as much: it decides how many page faults a step costs. There
    is no call that tells it: blocks are asked for. Empty with another allocator, and where no thread can be
    started, as in exit handlers of Python 3.12.
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
    # A thread of its own has a heap of its own. In the program's, a block that fits into what is
    # free there is never mapped, however large.
    thread = threading.Thread(target=_search, args=(libc, found))
    try:
        thread.start()
    except RuntimeError:
        return {}
    thread.join()
    return {"mmap_threshold": found[0]} if found else {}


def _search(libc: Any, found: List[int]) -> None:
    """Nothing is given back before the end: that would make room. Nothing is touched, so that no
    memory is used; mapped blocks are never freed, which would raise the threshold."""
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
