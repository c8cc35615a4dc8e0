"""Starts a program as ranks of a job on this machine: `python -E start_ranks.py RANKS PROGRAM ARGUMENT...`.

It works like torchrun, but its ranks are forks that have torch (forked_python.py), and get the recorder's hook from
PYTHONPATH, which -E hides from this process. A rank that is alone gets no variables of a job, as without torchrun.
Ends with the first exit code that is not 0, and ends the remaining ranks.
"""

import gc
import os
import signal
import socket
import sys

import forked_python
import light_torch  # noqa: F401


def ranks_environments(ranks):
    if int(ranks) == 1:
        return [dict(os.environ)]
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    return [{**os.environ, **job, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(int(ranks))]


def wait_for(running):
    code = 0
    while running and code == 0:
        process, status = os.wait()
        running.discard(process)
        code = os.waitstatus_to_exitcode(status)
    for process in running:
        os.kill(process, signal.SIGTERM)
    for process in running:
        os.waitpid(process, 0)
    return code


def request_in_fork(ranks, *program):
    """Returns the request of a rank in its fork. In this process, ends with the job."""
    running = set()
    gc.freeze()
    for environment in ranks_environments(ranks):
        process = os.fork()
        if process == 0:
            return {"arguments": list(program), "env": environment, "cwd": os.getcwd()}
        running.add(process)
    sys.exit(wait_for(running))


if __name__ == "__main__":
    exec(*forked_python.become(request_in_fork(*sys.argv[1:])))
