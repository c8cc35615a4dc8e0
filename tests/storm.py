#!/usr/bin/env python3
"""The storm: every command that writes, killed, interrupted or out of space, and very large or unusual input.

    tests/storm.py --bin build/bin            all checks: a quarter of an hour
    tests/storm.py --bin build/bin full/      checks whose name contains this
    tests/storm.py --bin build/bin --short    some of each, in seconds

A check is called KIND/COMMAND. After the disturbance a command must have left its output unchanged or complete. It
must report the problem in one line, with the documented exit code. When run again, it must write the complete output
and nothing else. Kinds: `kill` (SIGKILL at random moments), `calls` (SIGKILL before each system call that changes
files, by strace), `interrupt` (SIGINT, SIGTERM), `full` (a small tmpfs, for root), `large` (RLIMIT_FSIZE),
`read_only` (for root by a mount), `folder` (another thing has the output's name), `missing` (inputs), `stdout`
(/dev/full), `big` (a thousand ranks, a million nodes, 100 MB strings, clocks that jump, deep nesting).
"""

import argparse
import contextlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from storm_commands import COMMANDS, INPUTS, NEEDS_TORCH, SHORT, Command, snapshot
from storm_input import BIG, BIG_MADE, READS, big, errors_in

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALLS = "openat write linkat rename renameat2 mkdir fchmod flock unlink unlinkat close".split()


def kill(command, short):
    for i in range(2 if short else 12):
        before = command.old if i % 2 else {}
        command.fill(before)
        process = command.start()
        time.sleep(random.uniform(0, 1.1 * command.seconds))
        process.kill()
        command.end(process)
        command.judge(before, temporary=True)
        command.recovers()


def calls(command, short):
    if not shutil.which("strace"):
        return "strace is not here"
    for call in CALLS[:1] if short else CALLS:
        at, killed, run = 1, True, 0
        while killed and run < 40:
            before = command.old if run % 2 else {}
            command.fill(before)
            inject = f"inject={call}:signal=SIGKILL:when={at}"
            code, _ = command.run(before=["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject])
            killed = code != command.normal_code  # it, or a process that it started
            command.judge(before, temporary=True)
            command.recovers()
            at, run = at + 1 + at // 8, run + 1


def interrupt(command, short):
    for i in range(2 if short else 12):
        command.fill({})
        process = command.start()
        # Not before the program itself runs.
        time.sleep(random.uniform(0.005, 0.005 + 1.1 * command.seconds))
        with contextlib.suppress(ProcessLookupError):
            # A terminal sends it to all processes.
            process.terminate() if i % 2 else os.killpg(process.pid, signal.SIGINT)
        code, stderr = command.end(process)
        assert code in (command.normal_code, -2, -15, 130, 143), f"exit code {code}: {stderr.decode()}"
        assert len(errors_in(stderr)) <= max(1, command.normal_errors), stderr.decode()
        command.judge({}, temporary=False)
        command.recovers()


@contextlib.contextmanager
def mounted(folder, *options):
    subprocess.run(["mount", *options, str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def can_mount(folder):
    if os.geteuid() != 0:
        return False
    try:
        with mounted(folder, "-t", "tmpfs", "tmpfs"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False  # root in a container


def full(command, short):
    if not can_mount(command.out):
        return "nothing can be mounted here"
    total = sum(len(content) + 4096 for content in command.complete.values() if content)
    sizes = [f"size={max(4096, int(total * part)) // 4096 * 4096}" for part in (0, 0.3, 0.6, 0.9)]
    for options in sizes[1:2] if short else [*sizes, "nr_inodes=1", "nr_inodes=2", "nr_inodes=3"]:
        command.fill({})
        with mounted(command.out, "-t", "tmpfs", "-o", options, "tmpfs"):
            try:
                command.fill(command.old if len(command.old) == 1 else {})
            except OSError:
                command.fill({})
            before = snapshot(command.out)
            result = command.run()
            if result[0] != command.normal_code:
                command.refuses(result, (5,), ("out", "No space left on device"), before)
            else:
                command.is_done()
        command.recovers()


def large(command, short):
    sizes = sorted({len(content) for content in command.complete.values() if content})
    tried = {0, 1, *(size // 2 for size in sizes[-1:]), *(size - 1 for size in sizes[-1:])}
    for most in [sum(sizes[-1:]) // 2] if short else sorted(tried):
        for before in (command.old, {}):
            command.fill(before)

            def limit(most=most):
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

            result = command.run(preexec_fn=limit)
            if result[0] != command.normal_code:
                command.refuses(result, (5,), ("out", "File too large"), before)
            else:
                command.is_done()
        command.recovers()


def read_only(command, short):
    if os.geteuid() == 0 and not can_mount(command.out):
        return "nothing can be mounted here, and root may write anywhere"
    command.fill(command.old)
    reason = "Read-only file system" if os.geteuid() == 0 else "Permission denied"
    with contextlib.ExitStack() as stack:
        if os.geteuid() == 0:
            stack.enter_context(mounted(command.out, "--bind", str(command.out)))
            subprocess.run(["mount", "-o", "remount,ro,bind", str(command.out)], check=True)
        else:
            for folder in (command.out, *filter(pathlib.Path.is_dir, command.out.rglob("*"))):
                folder.chmod(0o555)
                stack.callback(folder.chmod, 0o755)
        result = command.run()
        # Complete outputs need not be written again.
        if result[0] != command.normal_code:
            command.refuses(result, (5,), ("out", reason), command.old)
    command.recovers()


def folder(command, short):
    word = next(word for word in command.words if word.startswith("out"))
    place = command.place / word
    is_file = command.complete.get(word[4:]) is not None
    command.fill({})
    if place.exists():
        place.rmdir()
    place.mkdir() if is_file else place.write_text("a file\n")
    try:
        code, stderr = command.run()
        errors = errors_in(stderr)
        # A name that only begins with this prefix needs no separate folder.
        is_prefix = not is_file and code == command.normal_code
        told = code in (2, 3, 5) and len(errors) == 1 and "out" in errors[0]
        assert is_prefix or told, f"exit code {code}: {stderr.decode()}"
        assert is_file or place.read_text() == "a file\n", "the file is lost"
    finally:
        place.rmdir() if place.is_dir() else place.unlink()
    command.fill({})
    command.recovers()


def missing(command, short):
    inputs = [i for i, word in enumerate(command.words) if word.startswith("in/")]
    if not inputs:
        return "it reads no file"
    for i in inputs:
        word = command.words[i]
        command.fill(command.old)
        words = [*command.words[:i], word + "-missing", *command.words[i + 1 :]]
        command.refuses(command.run(words), (2, 3, 5), (word,), command.old)


def stdout(command, short):
    for before in ({}, command.old):
        command.fill(before)
        with open("/dev/full", "w") as full_device:
            code, stderr = command.run(stdout=full_device)
        silent = len(errors_in(stderr)) == command.normal_errors and code == command.normal_code
        assert silent or (code == 5 and len(errors_in(stderr)) == 1), f"exit code {code}: {stderr.decode()}"
        command.judge(before, temporary=False)


KINDS = (kill, calls, interrupt, full, large, read_only, folder, missing, stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=ROOT / "build/bin", help="folder of the executables")
    parser.add_argument("--short", action="store_true", help="some commands, a few moments, no large input")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("filter", nargs="?", default="", help="part of the names to run")
    args = parser.parse_args()
    random.seed(args.seed)
    bin_dir = pathlib.Path(args.bin).resolve()
    counts = {"passed": 0, "failed": 0, "skipped": 0}

    def run(name, check):
        if args.filter not in name and not name.startswith("undisturbed/"):
            return
        try:
            why = check()
            verdict = "skipped" if why else "passed"
        except (AssertionError, ValueError, OSError, subprocess.SubprocessError) as error:
            verdict, why = "failed", str(error)
        counts[verdict] += 1
        if why:
            print(f"{verdict}: {name}: {why}", flush=True)

    with tempfile.TemporaryDirectory() as tmp:
        place = pathlib.Path(tmp)
        inputs = place / "inputs"
        inputs.mkdir()
        env = dict(os.environ, PATH=f"{bin_dir}:{os.environ['PATH']}", TESTDATA=str(ROOT / "tests/data"))
        subprocess.run(["bash", "-ec", INPUTS], cwd=inputs, env=env, check=True, stdout=subprocess.DEVNULL)
        for name in SHORT if args.short else COMMANDS:
            if not any(args.filter in f"{kind.__name__}/{name}" for kind in KINDS):
                continue
            if name in NEEDS_TORCH and not (bin_dir / "etude-torch").exists():
                run(name, lambda: "this build has no libtorch")
                continue
            made = []
            run(f"undisturbed/{name}", lambda: made.append(Command(name, place / name, inputs, bin_dir)))
            if not made:
                continue
            command = made[0]
            for kind in KINDS:
                run(f"{kind.__name__}/{name}", lambda kind=kind, command=command: kind(command, args.short))
            shutil.rmtree(command.place)
        for name in () if args.short else [*BIG, *BIG_MADE]:
            if any(args.filter in f"big/{name}/{line.split()[0]}" for line in READS):
                big(place / "big", name, inputs, bin_dir, run)
                shutil.rmtree(place / "big")
    print(f"storm: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
