"""Reports optimizer steps, without changing the optimizers themselves."""

from __future__ import annotations

import functools
import gc
import weakref
from threading import get_ident
from typing import Any, Callable, List, Optional, Set


class _Slot:
    """One optimizer of the program, or its successor if the program makes it again."""

    def __init__(self, label: str, key: tuple, optimizer: Any) -> None:
        self.label = label
        self.key = key
        self.ref = weakref.ref(optimizer)


class OptimizerMarks:
    """Calls `on_step(unit)` after each outermost optimizer step has returned.

    `unit` numbers the optimizers in the order of their first step; `labels[unit]` names them. The mark lies outside the
    profiler's range `Optimizer.step#...`, so that a trace that starts or stops there has no half-open range. `exact` is
    False if this torch has no such place and the mark lies inside the range. Optimizers that step inside others, and
    steps that are being compiled, give no mark. Attached once, detached once.
    """

    def __init__(self, torch: Any, on_step: Callable[[int], None]) -> None:
        self.labels: List[str] = []
        self.exact = True
        self._torch = torch
        self._on_step = on_step
        self._is_compiling = compiling_test(torch)
        self._slots: List[_Slot] = []
        self._created: weakref.WeakSet = weakref.WeakSet()
        self._inside: Set[int] = set()  # threads inside an outermost step
        self._active = False
        self._undo: List[Callable[[], None]] = []

    def attach(self) -> None:
        """Starts marking, including optimizers that already exist."""
        base = self._torch.optim.Optimizer
        self._active = True
        original = base.__dict__.get("profile_hook_step")
        if original is None:
            self.exact = False
            self._attach_post_hook()
        else:
            self._attach_wrapper(base, original.__func__)
            self._wrap_existing(base)
        self._watch_creation(base)

    def detach(self) -> None:
        """Stops marking. Wrapped steps stay in place and pass straight through."""
        self._active = False
        for undo in reversed(self._undo):
            undo()
        self._undo = []

    def known(self) -> int:
        """Returns the number of optimizers that exist or have stepped."""
        stepped = sum(1 for slot in self._slots if slot.ref() in self._created)
        return len(self._slots) + len(self._created) - stepped

    def waiting(self) -> bool:
        """Returns whether an optimizer exists that has never stepped."""
        return self.known() > len(self._slots)

    def have_tensor_subclasses(self) -> bool:
        """Returns whether a parameter's class handles operators itself (DTensor and others)."""
        for optimizer in list(self._created) + [slot.ref() for slot in self._slots]:
            for group in getattr(optimizer, "param_groups", []):
                if any(_handles_operators(parameter) for parameter in group["params"]):
                    return True
        return False

    def _attach_wrapper(self, base: type, original: Callable) -> None:
        def profile_hook_step(func: Callable) -> Callable:
            return self._wrap(original(func))

        base.profile_hook_step = staticmethod(profile_hook_step)
        self._undo.append(
            lambda: _restore(base, "profile_hook_step", profile_hook_step, staticmethod(original))
        )

    def _wrap(self, inner: Callable) -> Callable:
        is_compiling = self._is_compiling
        marks = self

        @functools.wraps(inner)
        def step(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not marks._active:
                return inner(*args, **kwargs)
            thread = get_ident()
            if thread in marks._inside:
                result = inner(*args, **kwargs)
                marks._created.discard(args[0])
                return result
            marks._inside.add(thread)
            try:
                result = inner(*args, **kwargs)
            finally:
                marks._inside.discard(thread)
            marks._on_step(marks._unit(args[0]))
            return result

        return step

    def _unit(self, optimizer: Any) -> int:
        for unit, slot in enumerate(self._slots):
            if slot.ref() is optimizer:
                return unit
        key = _kind_of(optimizer)
        for unit, slot in enumerate(self._slots):
            if slot.ref() is None and slot.key == key:
                slot.ref = weakref.ref(optimizer)
                return unit
        name = type(optimizer).__name__
        same = sum(1 for slot in self._slots if slot.key[0] is key[0])
        label = name if same == 0 else f"{name}#{same + 1}"
        self._slots.append(_Slot(label, key, optimizer))
        self.labels.append(label)
        return len(self._slots) - 1

    def _attach_post_hook(self) -> None:
        register = self._torch.optim.optimizer.register_optimizer_step_post_hook

        def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
            if self._active and not self._is_compiling():
                self._on_step(self._unit(optimizer))

        self._undo.append(register(hook).remove)

    def _watch_creation(self, base: type) -> None:
        original = base.__dict__.get("_patch_step_function")
        if original is None:
            return

        @functools.wraps(original)
        def _patch_step_function(optimizer: Any) -> None:
            original(optimizer)
            if self._active:
                self._created.add(optimizer)

        base._patch_step_function = _patch_step_function
        self._undo.append(
            lambda: _restore(base, "_patch_step_function", _patch_step_function, original)
        )

    def _wrap_existing(self, base: type) -> None:
        """Wraps the steps of classes and instances made before `attach`."""
        for cls in _subclasses(base):
            step = cls.__dict__.get("step")
            if getattr(step, "hooked", False):
                wrapped = self._wrap(step)
                cls.step = wrapped
                self._undo.append(functools.partial(_restore, cls, "step", wrapped, step))
        if not any(getattr(cls.__dict__.get("step"), "hooked", False) for cls in _subclasses(base)):
            return
        for optimizer in gc.get_objects():
            if issubclass(type(optimizer), base):
                self._created.add(optimizer)
                self._wrap_instance(optimizer)

    def _wrap_instance(self, optimizer: Any) -> None:
        """Wraps the `step` that a learning-rate scheduler sets on an optimizer instance."""
        step = vars(optimizer).get("step")
        if step is None or not callable(step):
            return
        ref = weakref.ref(optimizer)
        wrapped = self._wrap(lambda _, *args, **kwargs: step(*args, **kwargs))

        @functools.wraps(step)
        def own_step(*args: Any, **kwargs: Any) -> Any:
            return wrapped(ref(), *args, **kwargs)

        optimizer.step = own_step
        self._undo.append(lambda: _restore_instance(ref(), own_step, step))


def compiling_test(torch: Any) -> Callable[[], bool]:
    """Returns the function that tests whether the caller is being compiled."""
    test = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return test if test is not None else (lambda: False)


def _kind_of(optimizer: Any) -> tuple:
    groups = getattr(optimizer, "param_groups", [])
    return (type(optimizer), tuple(len(group["params"]) for group in groups))


def _handles_operators(parameter: Any) -> bool:
    own = getattr(type(parameter), "__torch_dispatch__", None)
    return own is not None and getattr(own, "__name__", "") != "_disabled_torch_dispatch_impl"


def _subclasses(base: type) -> List[type]:
    found: List[type] = []
    todo = [base]
    while todo:
        cls = todo.pop()
        if cls not in found:
            found.append(cls)
            todo.extend(cls.__subclasses__())
    return found


def _restore(owner: Any, name: str, ours: Any, original: Any) -> None:
    """Restores `original` unless other code has replaced ours meanwhile."""
    current: Optional[Any] = owner.__dict__.get(name)
    if getattr(current, "__func__", current) is ours:
        setattr(owner, name, original)


def _restore_instance(optimizer: Any, ours: Any, original: Any) -> None:
    if optimizer is not None and vars(optimizer).get("step") is ours:
        optimizer.step = original
