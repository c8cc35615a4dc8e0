"""Labels the calls of modules during a native recording."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import time
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional

from .module_marks import inside, unwrapped
from .optimizer_marks import compiling_test


# Names that torch's wrappers give to the wrapped module; not part of a path.
_WRAPPED = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


class _Label(NamedTuple):
    ref: weakref.ref
    text: bytes  # empty: no label
    path: str


class ModuleLabels:
    """Puts a label `nn.Module: PATH (CLASS)` around each call of a module, from start to stop.

    PATH begins with the class of the outermost module, inside DistributedDataParallel and the like: `Net`,
    `Net.encoder.layers.0`; the second outermost module of a class is `Net#2`. A module with several paths has the first
    one. CLASS is omitted if it equals the path. Compiled graphs have no label, because they are inside the compiled
    module.

    Only `torch.nn.Module.__call__` is replaced meanwhile: hooks would be visible to the compiler (see module_marks).
    Calls on all threads are labelled.
    """

    def __init__(self, torch: Any, library: ctypes.CDLL) -> None:
        self._base = torch.nn.Module
        self._graph = torch.fx.GraphModule
        self._is_compiling = compiling_test(torch)
        # Keeps Python's lock: releasing it could switch to another thread of the program.
        calls = ctypes.PyDLL(library._name, handle=library._handle)
        self._enter = calls.etude_recorder_enter_label
        self._enter.restype = ctypes.c_void_p
        self._enter.argtypes = [ctypes.c_char_p]
        self._leave = calls.etude_recorder_leave_label
        self._leave.restype = None
        self._leave.argtypes = [ctypes.c_void_p]
        self._spent = calls.etude_recorder_spent_since
        self._spent.restype = None
        self._spent.argtypes = [ctypes.c_longlong]
        self._labels: Dict[int, _Label] = {}  # by id
        self._roots: Dict[str, Iterator[int]] = {}
        self._original: Optional[Callable] = None
        self._ours: Optional[Callable] = None

    def start(self, outermost: Iterable[Any]) -> None:
        """Begins labelling; `outermost` are modules known to be called from outside of modules."""
        for module in outermost:
            self._learn(module)
        self._original = self._base.__call__
        self._ours = self._make_call(self._original)
        self._base.__call__ = self._ours

    def stop(self) -> None:
        """Restores the original methods."""
        if self._ours is not None and self._base.__call__ is self._ours:
            self._base.__call__ = self._original
        self._ours = None
        self._labels = {}

    def _make_call(self, original: Callable) -> Callable:
        is_compiling = self._is_compiling
        labels = self._labels
        enter = self._enter
        leave = self._leave
        find = self._find
        owner = self

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or owner._ours is not __call__:
                return original(module, *args, **kwargs)
            known = labels.get(id(module))
            text = known.text if known is not None and known.ref() is module else find(module)
            label = enter(text) if text else None
            try:
                return original(module, *args, **kwargs)
            finally:
                leave(label)

        return __call__

    def _find(self, module: Any) -> bytes:
        """Returns the label of a module at its first call."""
        begin = time.perf_counter_ns()  # clock of the recorder
        if isinstance(module, self._graph):
            self._labels[id(module)] = _Label(weakref.ref(module), b"", "")
        else:
            self._learn(module)
        label = self._labels.get(id(module))  # missing if the recording has ended on another thread
        self._spent(begin)
        return label.text if label is not None else b""

    def _learn(self, module: Any) -> None:
        """Names a module and all of its unnamed parts."""
        root = unwrapped(module)
        known = self._labels.get(id(root))
        if known is not None and known.ref() is root:
            path = known.path
        else:
            path = self._root_path(root)
            self._add(root, path)
            # A module may list its parts in a custom way.
            with contextlib.suppress(Exception):
                for name, part in root.named_modules():
                    self._add(part, ".".join([path, *_words(name)]))
        while module is not root:
            self._add(module, path)
            module = inside(module)

    def _root_path(self, root: Any) -> str:
        name = type(root).__name__
        if not _has_parts(root):  # losses and activations: programs often make new ones
            return name
        count = next(self._roots.setdefault(name, itertools.count(1)))
        return name if count == 1 else f"{name}#{count}"

    def _add(self, module: Any, path: str) -> None:
        known = self._labels.get(id(module))
        if known is not None and known.ref() is module:
            return
        kind = type(module).__name__
        if kind == "OptimizedModule":
            kind = type(unwrapped(module)).__name__
        text = f"nn.Module: {path}" if path == kind else f"nn.Module: {path} ({kind})"
        self._labels[id(module)] = _Label(weakref.ref(module), text.encode("utf-8", "replace"), path)


def _has_parts(module: Any) -> bool:
    try:
        return any(True for _ in module.children())
    except Exception:  # custom listing
        return False


def _words(name: str) -> List[str]:
    return [word for word in name.split(".") if word and word not in _WRAPPED]
