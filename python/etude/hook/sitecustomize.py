"""Start-up hook of `etude record`, found through PYTHONPATH by every Python process that the program starts.

Runs the sitecustomize module that it shadows, if there is one, and waits for the program to import torch. Writes no
output, and imports only parts of importlib. Inactive unless ETUDE_RECORD_DIR or ETUDE_RECORD is set. In a Python with
Etude's wheel, etude_record.pth calls `start` for ETUDE_RECORD, without PYTHONPATH.
"""

import os
import sys


def _hook_directory():
    return os.path.dirname(os.path.abspath(__file__))


def _run_hidden():
    """Runs the next sitecustomize on the path, under its own name."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = _hook_directory()
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    ours = sys.modules.get("sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules["sitecustomize"] = ours
        raise


class _TorchFinder:
    """Finds torch like Python, and installs the recording after torch is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        from importlib.machinery import PathFinder

        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        session = _session()
        if session is None:
            return spec
        session.quiet_logs()
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            session.install(module)

        spec.loader.exec_module = exec_module
        return spec


def _session():
    """Returns the recording package, under a private name; None if it cannot be loaded."""
    from importlib import import_module, util

    name = "_etude_recording"
    try:
        if name not in sys.modules:
            folder = os.path.join(os.path.dirname(_hook_directory()), "recording")
            spec = util.spec_from_file_location(
                name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
            )
            package = util.module_from_spec(spec)
            sys.modules[name] = package
            spec.loader.exec_module(package)
        return import_module(name + ".session")
    except Exception as error:
        _leave_message(error)
        return None


def _leave_message(error):
    if not os.environ.get("ETUDE_RECORD_DIR"):
        print("etude: ETUDE_RECORD: %s: %s" % (type(error).__name__, error), file=sys.stderr)
        return
    try:
        with open(os.path.join(os.environ["ETUDE_RECORD_DIR"], ".etude-hook"), "a") as out:
            out.write("error: %s: %s\n" % (type(error).__name__, error))
    except OSError:
        pass


def _leave_trace():
    """Leaves a mark for `etude record` that a Python process has started with the hook."""
    try:
        path = os.path.join(os.environ["ETUDE_RECORD_DIR"], ".etude-hook")
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644))
    except OSError:
        pass


def start():
    """Records the program as soon as it imports torch."""
    if any(type(finder).__name__ == "_TorchFinder" for finder in sys.meta_path):
        return
    if "torch" in sys.modules:
        session = _session()
        if session is not None:
            session.install(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, _TorchFinder())


if __name__ == "sitecustomize":
    if os.environ.get("ETUDE_RECORD_DIR"):
        _leave_trace()
    try:
        _run_hidden()
    finally:
        if os.environ.get("ETUDE_RECORD_DIR") or os.environ.get("ETUDE_RECORD"):
            start()
