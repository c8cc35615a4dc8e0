"""Jobs of two ranks, recorded and replayed."""

import json
import os
import pathlib
import subprocess
import sys

START_RANKS = str(pathlib.Path(__file__).resolve().parents[1] / "start_ranks.py")
ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
ATTEMPTS = 3


def record(folder, source, *options):
    """Records a job, and returns its capture in `folder`. Uses PyTorch's observers, whose files tests change, unless
    `options` are given."""
    if "--recorder" not in options:
        options = ("--recorder", "observers", *options)
    folder.mkdir(exist_ok=True)
    (folder / "job.py").write_text(source)
    command = [ETUDE, "record", "-q", "--force", *options, "-o", folder / "job", "--warmup", "2", "--steps", "2", "--"]
    command += [sys.executable, "-E", START_RANKS, "2", folder / "job.py"]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    # The end of the job is not tested here: PyTorch's observer may abort it if threads of Gloo run
    # (docs/commands/record.md), one of a hundred times before a rank's trace is written.
    for _ in range(ATTEMPTS):
        done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=300)
        job = folder / "job/job.json"
        if job.exists() and sorted(json.loads(job.read_text())["ranks"]) == ["0", "1"]:
            return folder / "job"
    raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")


def run(folder, *options, text_in=""):
    return subprocess.run(
        [ETUDE, "replay", folder, "--warmup", "1", "--iterations", "2", *options],
        input=text_in,
        text=True,
        capture_output=True,
        timeout=120,
    )


def replay(folder, *options, code=0):
    done = run(folder, "--json", *options)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)
