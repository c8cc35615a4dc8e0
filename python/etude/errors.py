"""Exceptions and warnings."""

from __future__ import annotations


class Error(Exception):
    """A failure of Etude. The text contains the place, what was found and what was expected.

    `code` is one of "usage" (an argument requests something that does not exist), "bad_input" (a file is malformed or
    of another kind), "unavailable" (not supported by this machine or build), "io" (an error of the operating system),
    "interrupted" and "internal" (a bug in Etude).
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.code, str(self))


class Warning(UserWarning):
    """A remark on a trace that is not an error: skipped, repaired or missing data."""
