"""Keeps torch.compile from compiling the recording itself.

If a compiled function calls eager code, as in an optimizer step, the compiler inspects every frame that runs there.
Frames of this package are excluded by marking their code; nothing is imported for this.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Iterator

# Modules whose functions call the program, which must still be compiled.
_PASSING = ("optimizer_marks", "module_marks", "module_labels", "profiler_marks", "wait_labels")


def exclude(torch: Any) -> None:
    """Excludes the functions of this package and, except for _PASSING, their callees."""
    native = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    package = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.rpartition(".")[0] != package:
            continue
        passing = name.rpartition(".")[2] in _PASSING
        for code in _codes_of(module):
            _exclude_code(native, code, passing)


def _exclude_code(native: Any, code: types.CodeType, passing: bool) -> None:
    if hasattr(native, "set_code_exec_strategy"):
        action = native._FrameAction
        inner = action.DEFAULT if passing else action.SKIP
        native.set_code_exec_strategy(code, native._FrameExecStrategy(action.SKIP, inner))
    elif hasattr(native, "skip_code"):
        native.skip_code(code)


def _codes_of(module: types.ModuleType) -> Iterator[types.CodeType]:
    """Yields the code defined in the module, without decorators' wrappers."""
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else (value,)
        for member in members:
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            member = getattr(member, "__wrapped__", member)
            code = getattr(member, "__code__", None)
            if code is not None and code.co_filename == module.__file__:
                yield from _nested(code)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
