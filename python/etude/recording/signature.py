"""Distinguishes steps by the optimizers that stepped, and by the inputs of the outermost modules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Dict, List, Tuple

# Limits on the inspected arguments of one call. Beyond them, inputs count as equal.
_DEPTH_MAX = 3
_LEAVES_MAX = 32
# Maximum of different calls per step, and of different steps per recording.
_CALLS_MAX = 64
_SIGNATURES_MAX = 1000

_DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "complex64": "c64",
    "complex128": "c128",
}


class CallCollector:
    """Calls of outermost modules since the end of the last step; cheap to add to."""

    def __init__(self, tensor_type: type) -> None:
        self._tensor_type = tensor_type
        self._calls: Dict[tuple, int] = {}
        self._more = 0

    def add(self, label: str, training: bool, grad: bool, args: tuple, kwargs: dict) -> None:
        """Adds one call. Keeps shapes and dtypes only; holds no tensor."""
        leaves: List[tuple] = []
        for value in args:
            if isinstance(value, self._tensor_type):
                leaves.append(_leaf(value))
            else:
                self._collect(value, leaves, 1)
        if kwargs:
            self._collect(kwargs, leaves, 0)
        key = (label, training, grad, tuple(leaves))
        if key in self._calls:
            self._calls[key] += 1
        elif len(self._calls) < _CALLS_MAX:
            self._calls[key] = 1
        else:
            self._more += 1

    def take(self) -> tuple:
        """Returns the calls in order of first appearance with their counts, and clears them."""
        if not self._calls:
            return ()
        calls = tuple(self._calls.items())
        if self._more:
            calls += ((None, self._more),)
        self._calls = {}
        self._more = 0
        return calls

    def _collect(self, value: Any, leaves: List[tuple], depth: int) -> None:
        if isinstance(value, self._tensor_type):
            if len(leaves) < _LEAVES_MAX:
                leaves.append(_leaf(value))
        elif depth < _DEPTH_MAX:
            if isinstance(value, (list, tuple)):
                for item in value[:_LEAVES_MAX]:
                    self._collect(item, leaves, depth + 1)
            elif isinstance(value, Mapping):
                for item in list(value.values())[:_LEAVES_MAX]:
                    self._collect(item, leaves, depth + 1)


def _leaf(tensor: Any) -> tuple:
    try:
        if tensor.is_nested:
            return (tensor.dtype, _jagged_shape(tensor))
        return (tensor.dtype, tensor.shape)
    except (RuntimeError, NotImplementedError):  # nested tensors of the older layout have no shape
        return (tensor.dtype, None)


def _jagged_shape(tensor: Any) -> tuple:
    """Replaces ragged lengths by "j" and their sum; the size itself is a symbol that differs in each tensor."""
    fixed = [size for size in tensor.shape if type(size) is int]
    total = tensor.values().numel() // max(1, math.prod(fixed[1:]))
    return tuple(size if type(size) is int else f"j{total}" for size in tensor.shape)


@dataclass
class Signature:
    """One kind of step. `seen` and `timed` are counts of steps, `times` those of the timed ones, in ns."""

    id: str
    units: Tuple[str, ...]
    calls: tuple
    seen: int = 0
    timed: int = 0
    times: List[int] = field(default_factory=list)
    recorded: bool = False

    @property
    def typical_ns(self) -> float:
        """Returns the time of the timed steps without outliers."""
        return len(self.times) * median(self.times) if self.times else 0.0

    def to_json(self) -> dict:
        """Returns the entry of job.json."""
        return {
            "id": self.id,
            "description": self.describe(),
            "units": list(self.units),
            "calls": [_call_json(key, count) for key, count in self.calls],
            "seen": self.seen,
            "timed": self.timed,
            "recorded": self.recorded,
        }

    def describe(self) -> str:
        """Returns one readable line: `SGD; ResNet f32[8,3,32,32]`."""
        parts = [" ".join(_run_lengths(self.units))] if self.units else []
        for key, count in self.calls:
            parts.append(_describe_call(key) + (f" x{count}" if count > 1 else ""))
        return "; ".join(parts)


# Shared signature of all steps beyond _SIGNATURES_MAX different ones.
_OTHER_STEPS = (("other steps",), ())


class SignatureTable:
    """All signatures seen, in order of appearance; ids are a, b, ..., z, aa, ..."""

    def __init__(self) -> None:
        self._by_key: Dict[tuple, Signature] = {}

    def see(self, units: Tuple[str, ...], calls: tuple) -> Signature:
        """Returns the signature of a step and counts it as seen."""
        key = (units, calls)
        found = self._by_key.get(key)
        if found is None and len(self._by_key) >= _SIGNATURES_MAX:
            key = _OTHER_STEPS
            found = self._by_key.get(key)
        if found is None:
            units, calls = key
            found = Signature(_letters(len(self._by_key)), units, calls)
            self._by_key[key] = found
        found.seen += 1
        return found

    def by_time(self) -> List[Signature]:
        """Returns the timed signatures by time, descending."""
        timed = [signature for signature in self._by_key.values() if signature.times]
        return sorted(timed, key=lambda signature: -signature.typical_ns)

    def all(self) -> List[Signature]:
        return list(self._by_key.values())

    def to_json(self) -> List[dict]:
        return [signature.to_json() for signature in self._by_key.values()]


def _letters(number: int) -> str:
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def _run_lengths(words: Tuple[str, ...]) -> List[str]:
    runs: List[List[Any]] = []
    for word in words:
        if runs and runs[-1][0] == word:
            runs[-1][1] += 1
        else:
            runs.append([word, 1])
    return [word if count == 1 else f"{word} x{count}" for word, count in runs]


def _dtype_text(dtype: Any) -> str:
    name = str(dtype).replace("torch.", "")
    return _DTYPES.get(name, name)


def _leaf_text(leaf: tuple) -> str:
    dtype, shape = leaf
    sizes = "?" if shape is None else ",".join(str(size) for size in shape)
    return f"{_dtype_text(dtype)}[{sizes}]"


def _describe_call(key: Any) -> str:
    if key is None:
        return "other calls"
    label, training, grad, leaves = key
    words = [label]
    if not training:
        words.append("eval")
    if not grad:
        words.append("no_grad")
    return " ".join(words + [_leaf_text(leaf) for leaf in leaves])


def _call_json(key: Any, count: int) -> dict:
    if key is None:
        return {"other": True, "count": count}
    label, training, grad, leaves = key
    return {
        "module": label,
        "training": training,
        "grad": grad,
        "inputs": [_leaf_text(leaf) for leaf in leaves],
        "count": count,
    }
