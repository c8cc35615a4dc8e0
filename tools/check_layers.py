#!/usr/bin/env python3
"""Checks that each file of src/ includes only what tools/layers.txt allows, and that names which
files of a folder keep to themselves differ, as they are compiled together (ETUDE_UNITY): a call
could mean another file's function, or one of a header. Exit 1 and a list if not."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
LIBTORCH = re.compile(r"^(ATen|c10|torch)/")
# What an anonymous namespace declares at its own level: a type, a constant, a function's parameters.
UNNAMED = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.M | re.S)
TYPE = re.compile(r"^(?:template <.*>\n)?(?:struct|class|enum class) (\w+) (?:final )?[:{]", re.M)
CONSTANT = re.compile(r"^(?:inline )?(?:constexpr|const) [^=({]*?\b(k\w+)\b", re.M)
FUNCTION = re.compile(r"^[A-Za-z][\w:<>,&*\[\] ]*?[ &*](\w+\([^{;]*?\)) (?:const )?\{", re.M)
ALIAS = re.compile(r"^using (\w+ = [^;]*);", re.M)
# A function in a header.
DECLARED = re.compile(r"^(?:inline |constexpr )*[A-Za-z][\w:<>,&*\[\] ]*?[ &*](\w+\([^{;]*?\))(?: const| noexcept)* ?[;{]", re.M)
# What a call may take for each other is the same in signatures.
ALIKE = [
    (re.compile(r" = [^,)]*"), ""),
    (re.compile(r" \w+(?=[,)])|\bconst\b|\bstd::|&| "), ""),
    (re.compile(r"\bstring_view\b|\bchar\*"), "string"),
    (re.compile(r"\bspan\b"), "vector"),
    (re.compile(r"\b(?:u?int\d+_t|int|unsigned|size_t|double|float)\b"), "number"),
]
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


def signature(declared):
    """A function's name and parameters, such that two of which a call could mean either are equal."""
    found = " ".join(declared.split())
    for pattern, instead in ALIKE:
        found = pattern.sub(instead, found)
    return found


def own_names(text):
    """Names that a file keeps to itself, by what another file may not repeat: {key: name}."""
    found = {}
    for body in UNNAMED.findall(text):
        for name in TYPE.findall(body) + CONSTANT.findall(body):
            found[name] = name
        for declared in FUNCTION.findall(body):
            found[signature(declared)] = declared.split("(")[0]
        for alias in ALIAS.findall(body):
            name, meaning = alias.split(" = ")
            found.setdefault(name, (name, " ".join(meaning.split())))
    return found


def clashes():
    """A line for each name that two files of a folder keep to themselves."""
    headers = {}  # function -> file
    for path in sorted((ROOT / "src").rglob("*.h")):
        if "assets" not in path.parts:
            for declared in DECLARED.findall(path.read_text()):
                headers.setdefault(signature(declared), path.relative_to(ROOT))
    seen = {}  # (folder, test or not, key) -> (file, name)
    for path in sorted((ROOT / "src").rglob("*.cc")):
        where = path.relative_to(ROOT)
        kind = re.search(r"_(test|fuzz|bench)$", path.stem)
        if "assets" in path.parts or (kind and kind[1] != "test"):
            continue
        for key, name in own_names(path.read_text()).items():
            other, known = seen.setdefault((where.parent, bool(kind), key), (where, name))
            if key in headers:
                yield f"{where}: '{key}' is a function of {headers[key]}, too"
            same_alias = isinstance(name, tuple) and name == known
            if other != where and not same_alias:
                yield f"{where}: '{key}' is a name of {other}, too, and they are compiled together"


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
            allowed = allowed or (other == "formats" and TEST.search(path.name))
            if not allowed:
                problems.append(f"{where}: includes {target}: {other} is not below {module}")
    problems += clashes()
    print("\n".join(problems) if problems else "layers: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
