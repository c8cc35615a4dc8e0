"""For programs of tests, imported before torch. It halves torch's import time, because the parts for compilers,
sharded tensors and exports are imported only when torch.compile's front end or one of them is.

Optimizers call only two functions of that front end, which do nothing outside of a compiler. Distributed models
register their modules with it. Profilers ask whether CUDA graphs are on in it, through an attribute of torch that
imports it.
"""

import gc
import importlib
import sys
import types

assert "torch" not in sys.modules


class _Later(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") and name != "__path__":  # requested before a module of the package is imported
            raise AttributeError(name)
        load()
        return getattr(sys.modules[self.__name__], name)


_LATER = ("torch._meta_registrations", "torch.export", "torch._dynamo")


def load():
    """Imports the omitted parts, for programs that first use them elsewhere, such as sharded models and
    `torch.Generator`."""
    left = [name for name in _LATER if isinstance(sys.modules[name], _Later)]
    for name in left:
        del sys.modules[name]
    for name in left:
        setattr(torch, name.rpartition(".")[2], importlib.import_module(name))


for _name in _LATER:
    sys.modules[_name] = _Later(_name)
_dynamo = sys.modules["torch._dynamo"]
_dynamo.disable = lambda fn, recursive=True, wrapping=False: fn
_dynamo.graph_break = lambda *_: None
_dynamo.utils, _dynamo.trace_rules = _Later("torch._dynamo.utils"), _Later("torch._dynamo.trace_rules")
_dynamo.utils.get_optimize_ddp_mode = lambda: "ddp_optimizer"
_dynamo.trace_rules.LEGACY_MOD_INLINELIST = set()
_dynamo.trace_rules.get_legacy_mod_inlinelist = types.SimpleNamespace(cache_clear=lambda: None)
_dynamo.trace_rules.clear_lru_cache = lambda: None

gc.disable()  # an import creates no garbage
import torch  # noqa: E402

gc.enable()


def _prepare_trace(profile, real=torch.profiler._KinetoProfile.prepare_trace):
    lazy = getattr(torch, "_lazy_modules", set())
    lazy.discard("_inductor")
    try:
        real(profile)
    finally:
        lazy.add("_inductor")


torch.profiler._KinetoProfile.prepare_trace = _prepare_trace
