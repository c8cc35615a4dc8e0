"""Figures that a long measurement keeps in a file and goes on from, when it was stopped."""

import json
import pathlib


def read_kept(path, otherwise):
    """What was kept in the file; `otherwise`, if no file is named or there is none."""
    return json.loads(pathlib.Path(path).read_text()) if path and pathlib.Path(path).exists() else otherwise


def keep(path, figures):
    """Nothing, if no file is named."""
    if path:
        write_whole(path, json.dumps(figures, indent=1))


def write_whole(path, text):
    """The file has all of the text, or what it had before."""
    path = pathlib.Path(path)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)
