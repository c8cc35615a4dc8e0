"""Cost of a command that runs in a child of its own, because the memory that the system reports is a maximum over
all children."""

import json
import subprocess
import sys

CODE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode: sys.exit(done.stderr.decode()[-2000:] or f"exit code {done.returncode}")
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""


def cost(command):
    """Returns CPU seconds and peak memory in MiB of a command that must succeed."""
    done = subprocess.run([sys.executable, "-c", CODE, *map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n{done.stderr}")
    return tuple(json.loads(done.stdout))
