#!/usr/bin/env python3
"""Checks that each command has a page in docs/commands, and that the page names each of its options.

    tests/option_docs.py ETUDE

Options of every command are on the overview page. Prints missing ones; the exit code is then 1.
"""

import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs/commands"


def told_by(etude, *words):
    done = subprocess.run([etude, *words, "--help"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} --help: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def options(text):
    """Returns the options in a help text, with their short and long names."""
    return set(re.findall(r"^  (?:(-\w),)?(--[\w-]+)", text, re.MULTILINE))


def commands(text):
    """Returns the commands of an overview: two blanks, a command's name, at least two blanks, its description."""
    if " COMMAND [options]" not in text.partition("\n")[0]:
        return []
    return re.findall(r"^  ([a-z-]+) {2,}\w", text, re.MULTILINE)


def text_of(page):
    """Returns the text of the page and of its linked pages, because some options are described once for several
    commands."""
    text = page.read_text()
    linked = {(page.parent / path).resolve() for path in re.findall(r"\]\(([\w./-]+\.md)", text)}
    return text + "".join(path.read_text() for path in sorted(linked))


def main():
    etude = sys.argv[1]
    each = {}  # options, by the words of the command
    for name in commands(told_by(etude)):
        # A command with subcommands has one page for all.
        for inner in commands(told_by(etude, name)) or [None]:
            words = (name,) if inner is None else (name, inner)
            each[words] = options(told_by(etude, *words))
    common = set.intersection(*each.values())
    wanted = {}
    for words, found in each.items():
        wanted.setdefault(DOCS / f"{words[0]}.md", set()).update(found - common)
    missing = [f"{page}: there is no such page" for page in wanted if not page.exists()]
    for page, found in {DOCS / "README.md": common, **wanted}.items():
        text = text_of(page) if page.exists() else ""
        for names in sorted(found):
            if not any(name and re.search(rf"(?<![\w-]){name}(?![\w-])", text) for name in names):
                missing.append(f"{page.name}: {names[1]} is not described")
    print(*missing, sep="\n", end="\n" if missing else "")
    print(f"{len(each)} commands, {len(set.union(*each.values()))} options, {len(missing)} missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
