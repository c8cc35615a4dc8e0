"""Programs of tests that need torch but no process of their own making: forks of one that has imported it."""

import multiprocessing
import os
import sys

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["light_torch"])


def _main(program, arguments):
    sys.argv = ["-c", *arguments]
    exec(compile(program, "program", "exec"), {"__name__": "__main__"})
    # What torch keeps for the end of a process is not what is tested.
    sys.stdout.flush()
    os._exit(0)


def run_program(program, *arguments):
    """As `python -c PROGRAM ARGUMENT...`; fails where that would."""
    process = _forks.Process(target=_main, args=(program, [str(argument) for argument in arguments]))
    process.start()
    process.join()
    assert process.exitcode == 0, f"exit code {process.exitcode} of\n{program}"
