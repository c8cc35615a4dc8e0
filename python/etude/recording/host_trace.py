"""Completes the observer's file: removes dangling parents, and ranges read from unwritten memory."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

_HEAD_START = re.compile(r'^\s*"id": \d+, "name": "')
_HEAD = re.compile(r'^\s*"id": (\d+), "name": "(.*)", "ctrl_deps": (\d+),\s*$', re.DOTALL)
# Maximum of lines in a range's name.
_NAME_LINES_MAX = 1000
_TID = re.compile(r'\{"name": "tid", "type": "uint64", "value": (\d+)\}')
_SCHEMA = re.compile(r'\{"name": "op_schema", "type": "string", "value": "([^"]*)"\}')
_RANGE = re.compile(r'("name": "tensor_range", "type": "string", "value": )("(?:[^"\\]|\\.)*")')
_INPUTS = re.compile(r'^\s*"inputs": (\{.*\}),\s*$')
_COMPRESSION = 6


@dataclass
class Finished:
    """Result of `finish`. Counts are nodes."""

    nodes: int
    reattached: int


def finish(source: str, target: str, parse_schema: Callable[[str], Any]) -> Finished:
    """Writes the observer's JSON file `source` to `target`, compressed.

    A range that was open when the recording began or ended is missing from the file; its children are attached to the
    step in which they ran, or to their thread. A recorded integer range of an argument that the operator only writes is
    meaningless and removed; `parse_schema` is torch._C.parse_schema. ValueError if the file has an unexpected layout.
    """
    nodes = _read_heads(source)
    parents = _new_parents(nodes)
    with gzip.open(target, "wb", _COMPRESSION) as out:
        for line in _rewritten(_lines(source), parents, parse_schema):
            out.write(line.encode("utf-8", "replace"))
    return Finished(nodes=len(nodes.parent), reattached=len(parents))


def _lines(source: str) -> Iterator[str]:
    """Yields the lines of the file; the head of a node is one item even if its name has line breaks."""
    with open(source, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for line in file:
            if _HEAD_START.match(line):
                for _ in range(_NAME_LINES_MAX):
                    if _HEAD.match(line):
                        break
                    line += file.readline()
            yield line


class _Heads:
    """Parent and thread of each node, and the nodes that are steps or threads."""

    def __init__(self) -> None:
        self.parent: Dict[int, int] = {}
        self.tid: Dict[int, int] = {}
        self.steps: List[int] = []
        self.threads: Dict[int, int] = {}


def _read_heads(source: str) -> _Heads:
    heads = _Heads()
    current: Optional[int] = None
    last = ""
    for line in _lines(source):
        last = line if line.strip() else last
        head = _HEAD.match(line)
        if head:
            current = int(head[1])
            heads.parent[current] = int(head[3])
            if head[2].startswith("ProfilerStep#"):
                heads.steps.append(current)
            elif head[2] == "[pytorch|profiler|execution_trace|thread]":
                heads.threads[current] = -1
        elif current is not None:
            tid = _TID.search(line)
            if tid:
                heads.tid[current] = int(tid[1])
                current = None
    if not heads.parent or last.strip() != "}":
        raise ValueError(f"{source}: found no complete execution trace")
    heads.threads = {heads.tid[node]: node for node in heads.threads if node in heads.tid}
    heads.steps.sort()
    return heads


def _new_parents(heads: _Heads) -> Dict[int, int]:
    """Returns the nodes whose parent is missing from the file, with their new parent."""
    lost = {node for node, parent in heads.parent.items() if parent not in heads.parent}
    new: Dict[int, int] = {}
    for node in lost:
        new[node] = _home(node, heads, lost)
    return new


def _home(node: int, heads: _Heads, lost: Set[int]) -> int:
    tid = heads.tid.get(node)
    if node not in heads.steps:
        earlier = [step for step in heads.steps if step < node and heads.tid.get(step) == tid]
        if earlier:
            return earlier[-1]
    return heads.threads.get(tid, 1) if tid is not None else 1


def _rewritten(
    lines: Iterator[str], parents: Dict[int, int], parse_schema: Callable[[str], Any]
) -> Iterator[str]:
    inputs = ""
    for line in lines:
        head = _HEAD.match(line)
        if head:
            line = _new_head(line, head, parents.get(int(head[1])))
        elif _INPUTS.match(line):
            inputs = line
        elif '"tensor_range", "type": "string", "value": "{' in line:
            line = _checked_ranges(line, inputs, parse_schema)
        yield line


def _new_head(line: str, head: "re.Match[str]", parent: Optional[int]) -> str:
    """Returns the head with its new parent, and with its name as valid JSON; the observer does not escape names."""
    name = head[2]
    try:
        json.loads(f'"{name}"')
    except ValueError:
        name = json.dumps(name.encode("utf-8", "replace").decode(), ensure_ascii=False)[1:-1]
    start = line[: head.start(2)]
    between = line[head.end(2) : head.start(3)]
    return start + name + between + str(head[3] if parent is None else parent) + line[head.end(3) :]


def _checked_ranges(line: str, inputs: str, parse_schema: Callable[[str], Any]) -> str:
    found = _RANGE.search(line)
    schema = _SCHEMA.search(line)
    if not found:
        return line
    try:
        ranges = json.loads(json.loads(found[2]))
        unreliable = _written_tensors(inputs, schema[1] if schema else "", parse_schema)
    except (ValueError, KeyError, TypeError, RuntimeError):
        ranges, unreliable = {}, set()
    kept = {place: value for place, value in ranges.items() if int(place) not in unreliable}
    text = json.dumps(json.dumps(kept, separators=(",", ":"))) if kept else '""'
    return line[: found.start(2)] + text + line[found.end(2) :]


def _written_tensors(inputs: str, schema: str, parse_schema: Callable[[str], Any]) -> Set[int]:
    """Returns the flat numbers of tensors in arguments that the schema marks as written."""
    match = _INPUTS.match(inputs)
    types = json.loads(match[1])["types"] if match else []
    written: Set[int] = set()
    if not schema:
        return written
    arguments = parse_schema(schema).arguments
    flat = 0
    for kind, argument in zip(types, arguments):
        count = _tensor_count(kind)
        if argument.alias_info is not None and argument.alias_info.is_write:
            written.update(range(flat, flat + count))
        flat += count
    return written


def _tensor_count(kind: str) -> int:
    return len(re.findall(r"\bTensor\(", kind))
