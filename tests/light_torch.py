"""For programs of tests: torch.compile's front end is imported when something of it is used, not by the first step of an optimizer
or the start of a profiler.

That import takes as long as torch itself. Optimizers ask for two functions only, which do nothing outside of a compiler; profilers ask whether CUDA graphs are on
in one, by an attribute of torch that imports it.
"""

import importlib
import sys
import types

import torch


class _Later(types.ModuleType):
    def __getattr__(self, name):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


_later = _Later("torch._dynamo")
_later.disable = lambda fn, recursive=True, wrapping=False: fn
_later.graph_break = lambda *_: None
sys.modules["torch._dynamo"] = _later


def _prepare_trace(profile, real=torch.profiler._KinetoProfile.prepare_trace):
    lazy = getattr(torch, "_lazy_modules", set())
    lazy.discard("_inductor")
    try:
        real(profile)
    finally:
        lazy.add("_inductor")


torch.profiler._KinetoProfile.prepare_trace = _prepare_trace
