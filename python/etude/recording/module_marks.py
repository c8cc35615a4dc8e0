"""Tells when an outermost module was called, without hooks on modules.

Hooks are avoided on purpose: a hook on an instance is pickled and copied with the model and makes
`Module.compile` compile once more; a global hook is seen by the compiler in every frame.
Instead `torch.nn.Module.__call__` is replaced while the outermost modules are being learnt, but put
back for the duration of each outermost call: what runs inside, compiled or not, sees the original.
After that only the classes of the outermost modules have a `__call__` of ours, which stays there and does nothing where code
was compiled meanwhile.
"""

from __future__ import annotations

import weakref
from threading import get_ident
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .facts import compiled_frames
from .optimizer_marks import compiling_test

# Outermost modules beyond this many are not followed.
_MODULES_MAX = 32


class ModuleMarks:
    """Calls `on_call(unit, module, args, kwargs)` after an outermost module call has returned.

    `unit` numbers the modules in the order of their first call, `labels[unit]` names them. Modules
    without parameters (losses, activations) give no mark, nor do calls that are being compiled.
    `on_enter(module)` is called before such a call when it is not None, of the thread `thread`, or
    of any while that is None. Of several threads that call at once some may be missed until all
    modules are known.
    """

    def __init__(self, torch: Any, on_call: Callable[[int, Any, tuple, dict], None]) -> None:
        self.labels: List[str] = []
        self.on_enter: Optional[Callable[[Any], None]] = None
        self.thread: Optional[int] = None  # the one whose marks count, once it is known
        self.learning = False
        self._base = torch.nn.Module
        self._on_call = on_call
        self._is_compiling = compiling_test(torch)
        self._entries: Dict[int, Tuple[weakref.ref, Optional[int]]] = {}
        self._classes: List[Tuple[type, Callable, Optional[Callable]]] = []
        self._compiled = 0  # frames, when the first of these was taken
        self._original: Optional[Callable] = None
        self._learner: Optional[Callable] = None
        self._inside: Set[int] = set()  # the threads in an outermost module

    def learn(self) -> None:
        """Starts learning which modules are outermost; marks them from their first call on."""
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
        """The modules learnt so far that are still there, in the order of their first call."""
        units = sorted((unit, ref()) for ref, unit in self._entries.values() if unit is not None)
        return [module for _, module in units if module is not None]

    def without_parameters(self) -> bool:
        """Whether outermost modules were called, but none that gives marks."""
        return bool(self._entries) and not self.labels

    def detach(self) -> None:
        """Puts everything back."""
        self._stop_learning()
        self._release_classes()
        self.on_enter = None
        self._entries.clear()  # what stays in classes does nothing from now on

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
        """Learns anew when the program has dropped every outermost module it had."""
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
        # Code that was compiled meanwhile has found our calls in the classes: without them it would be compiled anew.
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
            # First: a compiler that traces this call stops there.
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
    except Exception:  # listed in a way of the program's own
        return False


def inside(module: Any) -> Optional[Any]:
    """What a wrapper of torch wraps; None if it is none."""
    name = type(module).__name__
    if name == "OptimizedModule":
        return module._orig_mod
    if name in ("DistributedDataParallel", "DataParallel"):
        return module.module
    return None


def unwrapped(module: Any) -> Any:
    """The user's model, also inside the wrappers of torch."""
    for _ in range(4):
        inner = inside(module)
        if inner is None:
            break
        module = inner
    return module
