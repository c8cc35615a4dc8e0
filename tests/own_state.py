"""Importing it has what tests start keep the user's state (src/cli/record/own_mark.cc) in a folder that goes with them, not in the home."""

import os
import tempfile

_folder = tempfile.TemporaryDirectory(prefix="etude-state-")
os.environ["XDG_STATE_HOME"] = _folder.name
