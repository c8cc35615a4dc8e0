"""For programs of tests: torch.compile's front end is imported when something of it is used, not by the first step of an optimizer.

That import takes as long as torch itself, and optimizers ask for two functions only, which do nothing outside of a compiler.
"""

import importlib
import sys
import types


class _Later(types.ModuleType):
    def __getattr__(self, name):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


_later = _Later("torch._dynamo")
_later.disable = lambda fn, recursive=True, wrapping=False: fn
_later.graph_break = lambda *_: None
sys.modules["torch._dynamo"] = _later
