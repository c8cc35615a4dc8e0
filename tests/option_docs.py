#!/usr/bin/env python3
"""Each command has a page in docs/commands, and each of its options is named there.

    tests/option_docs.py ETUDE

Options that every command has are on the page of them all. Prints what is missing; exit code 1 if anything is.
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
    """The options that a help text describes: short and long name of each, as far as it has them."""
    return set(re.findall(r"^  (?:(-\w),)?(--[\w-]+)", text, re.MULTILINE))


def text_of(page):
    """The page with those that it links to: some options are described once for several commands."""
    text = page.read_text()
    linked = {(page.parent / path).resolve() for path in re.findall(r"\]\(([\w./-]+\.md)", text)}
    return text + "".join(path.read_text() for path in sorted(linked))


def main():
    etude = sys.argv[1]
    # A command's line: two blanks, its name, at least two blanks, what it does.
    commands = re.findall(r"^  ([a-z-]+) {2,}\w", told_by(etude), re.MULTILINE)
    each = {name: options(told_by(etude, name)) for name in commands}
    common = set.intersection(*each.values())
    wanted = {DOCS / f"{name}.md": found - common for name, found in each.items()}
    missing = [f"{page}: there is no such page" for page in wanted if not page.exists()]
    for page, found in {DOCS / "README.md": common, **wanted}.items():
        text = text_of(page) if page.exists() else ""
        for names in sorted(found):
            if not any(name and re.search(rf"(?<![\w-]){name}(?![\w-])", text) for name in names):
                missing.append(f"{page.name}: {names[1]} is not described")
    print(*missing, sep="\n", end="\n" if missing else "")
    print(f"{len(commands)} commands, {len(set.union(*each.values()))} options, {len(missing)} missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
