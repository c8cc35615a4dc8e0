"""Installs the start-up hook. Imported by etude_record.pth when Python starts with ETUDE_RECORD set.

The hook is loaded by its path, under a private name, because the program may have its own `etude`.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "etude", "hook", "sitecustomize.py")
try:
    _spec = spec_from_file_location("_etude_hook", _path)
    _hook = module_from_spec(_spec)
    _spec.loader.exec_module(_hook)
    _hook.start()
except Exception as error:
    print("etude: ETUDE_RECORD: %s: %s" % (type(error).__name__, error), file=sys.stderr)
