"""Figures that a long measurement keeps in a file, from which it continues after it was stopped."""

import json
import pathlib


def read_kept(path, otherwise):
    """Returns the contents of the file, and `otherwise` if no file is named or the file is missing."""
    return json.loads(pathlib.Path(path).read_text()) if path and pathlib.Path(path).exists() else otherwise


def keep(path, figures):
    """Writes the figures to the file. Does nothing if no file is named."""
    if path:
        write_whole(path, json.dumps(figures, indent=1))


def write_whole(path, text):
    """Writes the whole text, or leaves the file unchanged."""
    path = pathlib.Path(path)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)
