"""Reports calls of outermost modules, without hooks on modules.

Hooks are avoided: a hook on an instance is pickled and copied with the model and makes `Module.compile` compile once
more; a global hook is visible to the compiler in every frame. Instead, `torch.nn.Module.__call__` is replaced while the
outermost modules are being learnt, but restored during each outermost call: code that runs inside, compiled or not,
uses the original. After that, only the classes of the outermost modules have a replaced `__call__`, which stays there
and has no effect if code was compiled meanwhile.
"""

from __future__ import annotations

import weakref
from threading import get_ident
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .facts import compiled_frames
from .optimizer_marks import compiling_test

# Maximum of observed outermost modules.
_MODULES_MAX = 32


class ModuleMarks:
    """Calls `on_call(unit, module, args, kwargs)` after an outermost module call has returned.

    `unit` numbers the modules in the order of their first call, `labels[unit]` names them. Modules without parameters
    (losses, activations) give no mark, nor do calls that are being compiled. `on_enter(module)`, if not None, is called
    before such a call of the thread `thread`, or of any thread while that is None. If several threads call at once,
    some calls may be missed until all modules are known.
    """

    def __init__(self, torch: Any, on_call: Callable[[int, Any, tuple, dict], None]) -> None:
        self.labels: List[str] = []
        self.on_enter: Optional[Callable[[Any], None]] = None
        self.thread: Optional[int] = None  # thread whose marks count, once known
        self.learning = False
        self._base = torch.nn.Module
        self._on_call = on_call
        self._is_compiling = compiling_test(torch)
        self._entries: Dict[int, Tuple[weakref.ref, Optional[int]]] = {}
        self._classes: List[Tuple[type, Callable, Optional[Callable]]] = []
        self._compiled = 0  # number of compiled frames when the first class was replaced
        self._original: Optional[Callable] = None
        self._learner: Optional[Callable] = None
        self._inside: Set[int] = set()  # threads inside an outermost module

    def learn(self) -> None:
        """Starts learning the outermost modules; marks them from their first call on."""
        if self.learning:
            return
        self._release_classes()
        self._original = self._base.__call__
        self._learner = self._make_learner(self._original)
        self.learning = True
        self._base.__call__ = self._learner

    def settle(self) -> None:
        """Ends learning; only the modules learnt so far give marks from now on."""
        if not self.learning:
            return
        self._stop_learning()
        for cls in {type(ref()) for ref, unit in self._entries.values() if unit is not None}:
            if issubclass(cls, self._base):
                self._take_class(cls)

    def outermost(self) -> List[Any]:
        """Returns the modules learnt so far that still exist, in the order of their first call."""
        units = sorted((unit, ref()) for ref, unit in self._entries.values() if unit is not None)
        return [module for _, module in units if module is not None]

    def without_parameters(self) -> bool:
        """Returns whether outermost modules were called, but none that gives marks."""
        return bool(self._entries) and not self.labels

    def detach(self) -> None:
        """Restores the original methods."""
        self._stop_learning()
        self._release_classes()
        self.on_enter = None
        self._entries.clear()  # methods that stay in classes have no effect from now on

    def _stop_learning(self) -> None:
        if not self.learning:
            return
        self.learning = False
        if self._base.__call__ is self._learner:
            self._base.__call__ = self._original

    def _make_learner(self, original: Callable) -> Callable:
        is_compiling = self._is_compiling
        base = self._base
        marks = self

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not marks.learning or base.__call__ is not __call__:
                return original(module, *args, **kwargs)
            base.__call__ = original
            try:
                return marks._outermost(original, module, args, kwargs)
            finally:
                if marks.learning and base.__call__ is original:
                    base.__call__ = __call__

        return __call__

    def _outermost(self, call: Callable, module: Any, args: tuple, kwargs: dict) -> Any:
        unit = self._unit(module)
        if unit is None:
            return call(module, *args, **kwargs)
        self._enter(module, get_ident())
        result = call(module, *args, **kwargs)
        self._on_call(unit, module, args, kwargs)
        return result

    def _enter(self, module: Any, thread: int) -> None:
        on_enter = self.on_enter
        if on_enter is not None and self.thread in (None, thread):
            on_enter(module)

    def _unit(self, module: Any) -> Optional[int]:
        entry = self._entries.get(id(module))
        if entry is not None and entry[0]() is module:
            return entry[1]
        unit = None
        if len(self.labels) < _MODULES_MAX and _has_parameters(module):
            unit = len(self.labels)
            self.labels.append(self._label(module))
        forget = None if unit is None else self._forget
        self._entries[id(module)] = (weakref.ref(module, forget), unit)
        return unit

    def _forget(self, _: weakref.ref) -> None:
        """Starts learning again when the program has dropped all of its outermost modules."""
        alive = any(ref() is not None for ref, unit in self._entries.values() if unit is not None)
        if self._classes and not alive and not self._inside:
            self.learn()

    def _label(self, module: Any) -> str:
        name = type(unwrapped(module)).__name__
        same = sum(1 for label in self.labels if label.split("#")[0] == name)
        return name if same == 0 else f"{name}#{same + 1}"

    def _take_class(self, cls: type) -> None:
        own = cls.__dict__.get("__call__")
        ours = self._make_class_call(cls, own)
        if not self._classes:
            self._compiled = compiled_frames()
        cls.__call__ = ours
        self._classes.append((cls, ours, own))

    def _release_classes(self) -> None:
        # Code compiled meanwhile depends on the replaced methods in the classes; removing them would recompile it.
        keep = bool(self._classes) and compiled_frames() > self._compiled
        for cls, ours, own in self._classes if not keep else ():
            if cls.__dict__.get("__call__") is not ours:
                continue
            if own is None:
                del cls.__call__
            else:
                cls.__call__ = own
        self._classes = []

    def _make_class_call(self, cls: type, own: Optional[Callable]) -> Callable:
        is_compiling = self._is_compiling
        entries = self._entries
        marks = self

        def call_original(module: Any, *args: Any, **kwargs: Any) -> Any:
            if own is not None:
                return own(module, *args, **kwargs)
            return super(cls, module).__call__(*args, **kwargs)

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            # First, because a compiler that traces this call stops here.
            if is_compiling():
                return call_original(module, *args, **kwargs)
            thread = get_ident()
            if thread in marks._inside:
                return call_original(module, *args, **kwargs)
            entry = entries.get(id(module))
            if entry is None or entry[1] is None or entry[0]() is not module:
                return call_original(module, *args, **kwargs)
            marks._enter(module, thread)
            marks._inside.add(thread)
            try:
                result = call_original(module, *args, **kwargs)
            finally:
                marks._inside.discard(thread)
            marks._on_call(entry[1], module, args, kwargs)
            return result

        return __call__


def _has_parameters(module: Any) -> bool:
    try:
        return next(iter(module.parameters()), None) is not None
    except Exception:  # custom listing
        return False


def inside(module: Any) -> Optional[Any]:
    """Returns the module inside a wrapper of torch; None if it is not a wrapper."""
    name = type(module).__name__
    if name == "OptimizedModule":
        return module._orig_mod
    if name in ("DistributedDataParallel", "DataParallel"):
        return module.module
    return None


def unwrapped(module: Any) -> Any:
    """Returns the user's model, also from inside torch's wrappers."""
    for _ in range(4):
        inner = inside(module)
        if inner is None:
            break
        module = inner
    return module
