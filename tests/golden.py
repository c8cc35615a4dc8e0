#!/usr/bin/env python3
"""Golden tests: commands and their expected output.

A case is a folder tests/golden/<area>/<case>/ with a file `cmd`, shell lines run in an empty folder, and a file
`expected`: their stdout and stderr, and the exit code if it is not 0. A case may contain input files. `$CASE` is its
folder, `$TESTDATA` is tests/data, and `$DATA` the folder of recorded traces that are not shipped. Cases that use
`$DATA` are skipped, visibly, if it is missing.

The ```console blocks of docs/ are cases too: `$ command` lines and their output, run one after the other in a folder
that contains the files of tests/data. A block after the line `<!-- no golden: reason -->` is left out.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden"
TEST_DATA = ROOT / "tests/data"
CONSOLE = re.compile(r"(?P<head>(?:<!-- no golden:[^\n]*-->\n)?)```console\n(?P<body>.*?)```\n", re.S)
TIMEOUT_S = 300


def needs_compat(text):
    return "etude compat" in text or "--compat" in text


def needs_torch(text):
    return any(f"etude {name}" in text for name in ("replay", "benchmark", "suite run", "suite calibrate"))


class Runner:
    def __init__(self, bin_dir, data_dir):
        self.bin = pathlib.Path(bin_dir).resolve()
        self.data = pathlib.Path(data_dir).resolve()

        done = subprocess.run([self.bin / "etude", "compat"], capture_output=True, text=True)
        self.lacks_compat = "lacks the compatible tools" in done.stderr

    def missing_for(self, text):
        """Returns why this build cannot run the commands of `text`; "" if it can."""
        if needs_torch(text) and not (self.bin / "etude-torch").exists():
            return "this build has no libtorch"
        if needs_compat(text) and self.lacks_compat:
            return "this build has no compatible tools"
        return ""

    def run(self, command, cwd, case=None):
        """Returns the output of `command`, with the exit code if it is not 0, and with names for folders."""
        env = dict(os.environ)
        env.update(
            PATH=f"{self.bin}:{env['PATH']}",
            DATA=str(self.data),
            TESTDATA=str(TEST_DATA),
            CASE=str(case or ""),
            XDG_STATE_HOME=f"{cwd}/state",
            LC_ALL="C.UTF-8",
        )
        try:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=cwd,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            return (error.stdout or b"").decode("utf-8", "backslashreplace") + f"[not done after {TIMEOUT_S} s]\n"
        text = done.stdout.decode("utf-8", "backslashreplace")
        names = [("CASE", case), ("DATA", self.data.is_dir() and self.data), ("TESTDATA", TEST_DATA), ("TMP", cwd)]
        for name, path in names:
            if path:
                text = text.replace(str(path), f"${name}")
        if done.returncode != 0:
            text += f"[exit {done.returncode}]\n"
        return text


def folder_cases():
    for cmd in sorted(GOLDEN.glob("*/*/cmd")):
        yield cmd.parent


def run_folder(runner, case, update):
    """Returns (verdict, detail) of a case folder."""
    command = (case / "cmd").read_text()
    if "$DATA" in command and not runner.data.is_dir():
        return "skipped", "recorded traces are absent"
    if lack := runner.missing_for(command):
        return "skipped", lack
    with tempfile.TemporaryDirectory() as tmp:
        got = runner.run(command, tmp, case)
    return judge(case / "expected", got, update)


def judge(expected_file, got, update):
    expected = expected_file.read_text() if expected_file.exists() else ""
    if got == expected and expected_file.exists():
        return "passed", ""
    if update:
        expected_file.write_text(got)
        return "updated", ""
    return "failed", difference(expected, got)


def difference(expected, got):
    import difflib

    lines = difflib.unified_diff(
        expected.splitlines(), got.splitlines(), "expected", "got", lineterm=""
    )
    return "\n".join(list(lines)[:60])


def parse_console(body):
    """Splits a console block into [(command, expected output)]."""
    steps = []
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            steps.append([line[2:].rstrip("\n"), ""])
        elif steps:
            steps[-1][1] += line
    return steps


def run_page(runner, page, update):
    text = page.read_text()
    if lack := runner.missing_for(text):
        return "skipped", lack
    verdict, details = "passed", []
    with tempfile.TemporaryDirectory() as tmp:
        shutil.copytree(TEST_DATA, tmp, dirs_exist_ok=True)

        def check(match):
            nonlocal verdict
            if match["head"]:
                return match[0]
            out = "```console\n"
            for command, expected in parse_console(match["body"]):
                got = runner.run(command, tmp)
                if got != expected:
                    verdict = "updated" if update else "failed"
                    details.append(f"$ {command}\n{difference(expected, got)}")
                out += f"$ {command}\n{got}"
            return out + "```\n"

        new = CONSOLE.sub(check, text)
    if update and new != text:
        page.write_text(new)
    return verdict, "\n".join(details)


def self_check(runner):
    """Tests the test: a wrong expectation must fail."""
    with tempfile.TemporaryDirectory() as tmp:
        case = pathlib.Path(tmp) / "case"
        case.mkdir()
        (case / "cmd").write_text("etude --version\n")
        (case / "expected").write_text("something else\n")
        wrong = run_folder(runner, case, update=False)[0]
        (case / "expected").write_text(runner.run("etude --version", tmp))
        right = run_folder(runner, case, update=False)[0]
    ok = (wrong, right) == ("failed", "passed")
    print("self-check:", "ok" if ok else f"a wrong case {wrong}, a right one {right}")
    return 0 if ok else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=ROOT / "build/bin", help="folder of the executables")
    parser.add_argument("--data", default=ROOT.parent / "shared/data", help="recorded traces")
    parser.add_argument("--update", action="store_true", help="take what is printed as expected")
    parser.add_argument("--without", metavar="TEXT", nargs="+", help="leave out cases with one of these in their names")
    parser.add_argument(
        "--rest", metavar="TEXT", nargs="+", help="only what --without TEXT... leaves out, and what needs libtorch"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases that run at once")
    parser.add_argument("--self-check", action="store_true", help="check that wrong cases fail")
    parser.add_argument("filter", nargs="?", default="", help="part of the names to run")
    args = parser.parse_args()
    runner = Runner(args.bin, args.data)
    if args.self_check:
        return self_check(runner)
    jobs = [(str(c.relative_to(GOLDEN)), run_folder, c) for c in folder_cases()]
    jobs += [
        (str(p.relative_to(ROOT)), run_page, p)
        for p in sorted((ROOT / "docs").rglob("*.md"))
        if CONSOLE.search(p.read_text())
    ]

    def is_wanted(name, what):
        if args.filter not in name or any(part in name for part in args.without or ()):
            return False
        text = (what / "cmd" if what.is_dir() else what).read_text()
        return not args.rest or any(part in name for part in args.rest) or needs_torch(text)

    jobs = [job for job in jobs if is_wanted(job[0], job[2])]
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda job: job[1](runner, job[2], args.update), jobs)
        for (name, _, _), (verdict, detail) in zip(jobs, results):
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict != "passed":
                print(f"{verdict}: {name}" + (f"\n{detail}" if detail else ""), flush=True)
    print("golden: " + ", ".join(f"{n} {v}" for v, n in sorted(counts.items())))
    return 1 if counts.get("failed") or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
