"""When imported, keeps the user's state (src/cli/record/own_mark.cc) of tests in a temporary folder instead of the
home."""

import os
import tempfile

_folder = tempfile.TemporaryDirectory(prefix="etude-state-")
os.environ["XDG_STATE_HOME"] = _folder.name
