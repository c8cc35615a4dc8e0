"""Completes the profiler's file: makes names valid JSON, and removes temporary paths."""

from __future__ import annotations

import gzip
import json
import re

from . import facts

_NAME = re.compile(rb'^(\s*"name": ")(.*)(",\s*)$', re.DOTALL)
_TRACE_NAME = re.compile(rb'"traceName": "[^"]*"')
_COMPRESSION = 6


def finish(source: str, target: str, name: str) -> None:
    """Writes the profiler's JSON file `source` to `target`, compressed.

    The profiler does not escape quotation marks in the names of ranges. `name` is the final file name, which the file
    itself repeats; the clock's name is added.
    """
    title = b'"traceName": ' + json.dumps(name).encode()
    title += b', "etude_clock": ' + json.dumps(facts.clock()).encode()
    with open(source, "rb") as lines, gzip.open(target, "wb", _COMPRESSION) as out:
        for line in lines:
            found = _NAME.match(line)
            if found and b'"' in found[2] and not _is_valid(found[2]):
                text = json.dumps(found[2].decode("utf-8", "replace"), ensure_ascii=False)
                line = found[1] + text[1:-1].encode() + found[3]
            elif b'"traceName"' in line:
                line = _TRACE_NAME.sub(lambda _: title, line)
            out.write(line)


def _is_valid(text: bytes) -> bool:
    try:
        json.loads(b'"' + text + b'"')
    except ValueError:
        return False
    return True
