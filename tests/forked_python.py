"""Runs programs like `python PROGRAM ARGUMENT...`, but in forks of one Python that has imported torch
(light_torch.py), because this import takes longer than most programs of tests.

A fork has the environment, the folder and the files of a normal start. It runs the `sitecustomize` on PYTHONPATH,
then the program as `__main__`, and ends like Python. A fork cannot test how an import of torch is noticed, or the
effect of Python's own options.
"""

import builtins
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile

_MOST_BYTES = 1 << 17

# Begin of programs, so that they take less time if they start a separate Python.
LIGHT = f"""
import os, sys, time
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import light_torch
del sys.path[0]
"""

# End of a job's ranks, after their last collective. Gloo's threads release tensors some time after the wait for them
# has ended, and PyTorch aborts if Python has ended by then. Exit functions therefore run, but Python does not end. No
# rank leaves before all have arrived here, and rank 0, which keeps the store, leaves last.
END_OF_RANK = """
import atexit, os, sys, time
import torch.distributed as dist
_store, _rank, _ranks = dist.distributed_c10d._get_default_store(), dist.get_rank(), dist.get_world_size()
def _all(key, count):
    while _store.add(key, 0) < count:
        time.sleep(0.01)
_store.add("etude test: here", 1)
_all("etude test: here", _ranks)
if _rank == 0:
    _all("etude test: gone", _ranks - 1)
else:
    _store.add("etude test: gone", 1)
dist.destroy_process_group()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
"""


class _Server:
    """The Python that forks, from the view of the requesting process."""

    def __init__(self):
        from etude.recording.session import QUIET_LEVELS

        self.levels = QUIET_LEVELS  # set by the recorder's hook before torch is loaded
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ETUDE_")}
        environment.pop("PYTHONPATH", None)
        # Read when torch is loaded.
        environment.update(self.levels, OMP_NUM_THREADS="1")
        with theirs:
            subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=environment)

    def run(self, arguments, env, cwd, timeout):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull) as nothing:
            files = [nothing.fileno(), out.fileno(), err.fileno()]
            request = {"arguments": [str(word) for word in arguments], "env": {**self.levels, **env}, "cwd": str(cwd)}
            socket.send_fds(self.requests, [json.dumps(request).encode()], files)
            child = self._answer(60)
            try:
                code = self._answer(timeout)
            except TimeoutError:
                os.kill(child, 9)
                self._answer(60)
                raise subprocess.TimeoutExpired(arguments, timeout) from None
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
        return subprocess.CompletedProcess(arguments, code, *texts)

    def _answer(self, timeout):
        self.requests.settimeout(timeout)
        answer = self.requests.recv(64)
        assert answer, "the Python that forks has ended"
        return int(answer)


_servers = []


def run(arguments, *, env, cwd, timeout=None):
    """Works like `subprocess.run([sys.executable, *arguments], …, capture_output=True, text=True)`."""
    if not _servers:
        _servers.append(_Server())
    return _servers[0].run(arguments, env, cwd, timeout)


def _request_in_fork(requests):
    """Answers each request with a fork's process id and then its exit code. Returns the request in the fork."""
    while True:
        message, files, _, _ = socket.recv_fds(requests, _MOST_BYTES, 3)
        if not message:
            os._exit(0)
        child = os.fork()
        if child == 0:
            requests.close()
            for target, file in enumerate(files):
                os.dup2(file, target)
                os.close(file)
            return json.loads(message)
        for file in files:
            os.close(file)
        requests.send(str(child).encode())
        requests.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def become(request):
    """Makes this process, a fork, equivalent to a new Python. Returns the program's code and the names of
    `__main__`."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    program, *_ = sys.argv = request["arguments"]
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path[0:1] = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError:
        pass
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    with open(program, "rb") as file:
        code = compile(file.read(), program, "exec")
    main = {"__name__": "__main__", "__builtins__": builtins, "__file__": program, "__spec__": None}
    names = vars(sys.modules["__main__"])
    names.clear()  # also this function's, if this file was started
    names.update(main)
    return code, names


if __name__ == "__main__":
    import light_torch  # noqa: F401

    gc.freeze()  # forks collect only their own garbage
    exec(*become(_request_in_fork(socket.socket(fileno=int(sys.argv[1])))))
