#!/usr/bin/env python3
"""Checks that each file of src/ includes only what tools/layers.txt allows, that no folder has more
than 40 source files and that no header's name occurs twice in a module. Exit 1 and a list if not."""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
LIBTORCH = re.compile(r"^(ATen|c10|torch)/")
MOST_FILES = 40
MAY_USE_LIBTORCH = {"torch", "suite"}
# Tests of every module may read traces from files.
TEST = re.compile(r"(_test\.cc|test_support\.h|planted_trace\.h)$")


def read_layers():
    """Returns ({module: rank}, modules that keep apart from their neighbours)."""
    rank, apart, level = {}, set(), 0
    previous_apart = False
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        is_apart = len(words) > 1
        if not (is_apart and previous_apart):
            level += 1
        rank[words[0]] = level
        if is_apart:
            apart.add(words[0])
        previous_apart = is_apart
    return rank, apart


def crowded(files):
    """A line for each folder with too many files and each header's name that a module has twice."""
    folders = collections.Counter(path.parent for path in files)
    for folder, count in sorted(folders.items()):
        if count > MOST_FILES:
            yield f"{folder}: has {count} source files, expected at most {MOST_FILES}"
    headers = {}
    for path in files:
        if path.suffix == ".h":
            first = headers.setdefault((path.parts[1], path.name), path)
            if first != path:
                yield f"{path}: {first} has the same name"


def main():
    rank, apart = read_layers()
    problems, files = [], []
    for path in sorted((ROOT / "src").rglob("*")):
        # Assets are what commands write out, not code of Etude's.
        if path.suffix not in {".h", ".cc"} or "assets" in path.parts:
            continue
        where = path.relative_to(ROOT)
        module = where.parts[1]
        files.append(where)
        if module not in rank:
            problems.append(f"{where}: module '{module}' is not in tools/layers.txt")
            continue
        for bracket, target in INCLUDE.findall(path.read_text()):
            if LIBTORCH.match(target) and module not in MAY_USE_LIBTORCH:
                problems.append(f"{where}: includes {target}: only torch/ and suite/ use libtorch")
            if not target.startswith("src/"):
                continue
            other = target.split("/")[1]
            allowed = other == module or rank.get(other, 99) < rank[module]
            allowed = allowed or (other == "formats" and TEST.search(path.name))
            if other == "compat" and module not in {"compat", "cli"}:
                problems.append(f"{where}: includes {target}: only cli/ uses compat/")
            elif not allowed:
                problems.append(f"{where}: includes {target}: {other} is not below {module}")
    problems += crowded(files)
    print("\n".join(problems) if problems else "layers: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
