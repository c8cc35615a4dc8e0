"""Counts with their nouns, as people read them."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """Such as "1 step" and "3 steps"; `many` where it is not `one` with an s."""
    return f"1 {one}" if count == 1 else f"{count:,} {many or one + 's'}"
