"""Starts a program as ranks of a job on this machine: `python start_ranks.py RANKS PROGRAM ARGUMENT...`.

As torchrun does, but without importing torch, which takes longer than most programs of tests. Ends with the first exit code that
is not 0, and ends the ranks that are left then.
"""

import os
import socket
import subprocess
import sys
import time


def main(ranks, *program):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    running = []
    code = 0
    try:
        for rank in map(str, range(int(ranks))):
            environment = {**os.environ, **job, "RANK": rank, "LOCAL_RANK": rank}
            running.append(subprocess.Popen([sys.executable, *program], env=environment))
        while running and code == 0:
            time.sleep(0.02)
            codes = [process.poll() for process in running]
            running = [process for process, ended in zip(running, codes) if ended is None]
            code = next(filter(None, codes), 0)
    finally:
        for process in running:
            process.terminate()
            process.wait()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
