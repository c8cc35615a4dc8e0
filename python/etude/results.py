"""Results of functions that make a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ._core import Trace


class Made(NamedTuple):
    """A new trace, and an account of every part of the old one."""

    trace: Trace
    account: dict[str, Any]
