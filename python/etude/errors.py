"""What goes wrong, as exceptions and warnings."""

from __future__ import annotations


class Error(Exception):
    """Something that Etude could not do; the text says where, what was found and what was expected.

    `code` is one of "usage" (an argument asks for something that does not exist), "bad_input" (a
    file is malformed or not what was announced), "unavailable" (this machine or build cannot do
    it), "io" (the operating system refused), "interrupted" and "internal" (a fault of Etude).
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.code, str(self))


class Warning(UserWarning):
    """A remark on a trace that is not an error: what was skipped, repaired or is missing."""
