"""How the C library's heap has adapted to the program."""

from __future__ import annotations

import ctypes
import functools
from typing import Dict

_LEAST = 64 << 10
_MOST = 64 << 20  # glibc's threshold ends at half of that
_STEP = 4096  # of the answer
_IS_MAPPED = 2  # a flag in the word before a block


@functools.lru_cache(maxsize=1)
def facts() -> Dict[str, int]:
    """`mmap_threshold`: from how many bytes on a block is not taken from the heap but mapped.

    glibc raises it to the largest mapped block that was freed (mallopt(3), M_MMAP_THRESHOLD), and
    gives free memory back beyond twice as much: it decides how many page faults a step costs. There
    is no call that tells it: blocks are asked for. Those that are mapped are never freed, which
    would raise it; they are not touched and take a page each. Empty with another allocator.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")
        if not hasattr(libc, "gnu_get_libc_version"):
            return {}
        in_use = ctypes.CDLL(None)
        if _address(libc.malloc) != _address(in_use.malloc):
            return {}
        libc.malloc.restype = ctypes.c_void_p
        libc.malloc.argtypes = [ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]
        low, high = _LEAST, _MOST
        while high - low > _STEP:
            middle = (low + high) // 2
            if _is_mapped(libc, middle):
                high = middle
            else:
                low = middle
        return {"mmap_threshold": high}
    except (OSError, AttributeError, MemoryError):
        return {}


def _address(function: object) -> object:
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]


def _is_mapped(libc: ctypes.CDLL, size: int) -> bool:
    block = libc.malloc(size)
    if block is None:
        raise MemoryError
    word = ctypes.sizeof(ctypes.c_size_t)
    if ctypes.c_size_t.from_address(block - word).value & _IS_MAPPED:
        return True
    libc.free(block)
    return False
