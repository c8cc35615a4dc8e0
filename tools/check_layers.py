#!/usr/bin/env python3
"""Checks that each file of src/ includes only what tools/layers.txt allows; exit 1 and a list if not."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
LIBTORCH = re.compile(r"^(ATen|c10|torch)/")
MAY_USE_LIBTORCH = {"torch", "suite"}


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


def main():
    rank, apart = read_layers()
    problems = []
    for path in sorted((ROOT / "src").rglob("*")):
        # Assets are what commands write out, not code of Etude's.
        if path.suffix not in {".h", ".cc"} or "assets" in path.parts:
            continue
        where = path.relative_to(ROOT)
        module = where.parts[1]
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
            if not allowed:
                problems.append(f"{where}: includes {target}: {other} is not below {module}")
    print("\n".join(problems) if problems else "layers: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
