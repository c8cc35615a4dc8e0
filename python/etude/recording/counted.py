"""Formats counts with nouns."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """Returns "1 step" or "3 steps"; `many` is needed if the plural is irregular."""
    return f"1 {one}" if count == 1 else f"{count:,} {many or one + 's'}"
