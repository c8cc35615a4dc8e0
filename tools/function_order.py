#!/usr/bin/env python3
"""Writes cmake/function_order.ld, by which the linker puts together what the quick commands run.

Whenever a function is called for the first time, the system loads the 64 kB of the program around it. A command runs some
400 kB of functions, and these lie in some 50 such pieces where each is beside its file's others. What the first command runs
comes first, then what else the second does, and so on. Runs each under valgrind; the program is a release build's:

    tools/function_order.py build/bin/etude            # a minute; when much of what these commands run has changed
    tools/function_order.py build/bin/etude --check    # whether the program has most of the functions listed; writes nothing
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORDER = ROOT / "cmake/function_order.ld"
DATA = ROOT / "tests/data"
CASE = DATA / "astra_sim/small_chunks_of_groups"
LEAST_FOUND = 0.75

# Each with an exit code of 0, after those that write what it reads.
COMMANDS = [
    ["compat", "astra-sim", "--congestion=unaware", *(f"--{key}-configuration={CASE}/{name}" for key, name in (
        ("workload", "w"), ("system", "system.json"), ("network", "network.yml"), ("remote-memory", "memory.json"), ("comm-group", "comm_group.json")))],
    ["generate", "microbench", "overlap", "--ranks", "4", "--size", "1MiB", "--duration", "100us", "--count", "4", "-o", "job/x"],
    ["simulate", "job", "--network", "Ring(4):50GB/s,500ns"],
    ["convert", DATA / "mlp_et.json.gz", DATA / "mlp_kineto.json.gz", "-o", "mlp.et"],
    ["info", "mlp.et"],
    ["validate", "mlp.et"],
]  # fmt: skip


def symbols(program):
    """{name: addresses} and {address: names} of the functions in it."""
    names, addresses = collections.defaultdict(set), collections.defaultdict(list)
    told = subprocess.run(["nm", "--defined-only", program], check=True, capture_output=True, text=True).stdout
    for line in told.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tTwWuV":
            names[words[2]].add(words[0])
            addresses[words[0]].append(words[2])
    return names, addresses


def functions_run(program, command, folder):
    """Names, in the order of callgrind's file."""
    profile = folder / "profile"
    done = subprocess.run(
        ["valgrind", "-q", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={profile}", program, *command],
        cwd=folder, capture_output=True, text=True)  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"etude {' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    found = re.findall(r"^c?fn=\(\d+\) (\S+)", profile.read_text(), re.M)
    return list(dict.fromkeys(re.sub(r"'\d+$", "", name) for name in found))


def order(program):
    """Sections of functions."""
    names, addresses = symbols(program)
    users = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for i, command in enumerate(COMMANDS):
            print(f"etude {' '.join(map(str, command))}"[:120], flush=True)
            for name in functions_run(program, command, pathlib.Path(folder)):
                users[name].append(i)
    found = sorted((name for name in users if name in names), key=lambda name: [i not in users[name] for i in range(len(COMMANDS))])
    # Constructors and destructors have several names, and the section has one of them.
    return list(dict.fromkeys(other for name in found for address in sorted(names[name]) for other in addresses[address]))


def write(found):
    part = ORDER.with_suffix(".part")
    part.write_text("/* Written by tools/function_order.py. */\nSECTIONS\n{\n  .text.ordered :\n  {\n"
                    + "".join(f"    *(.text.{name})\n" for name in found) + "  }\n}\nINSERT BEFORE .text;\n")  # fmt: skip
    part.replace(ORDER)
    print(f"{len(found)} functions")


def check(program):
    listed = re.findall(r"\(\.text\.(\S+)\)", ORDER.read_text())
    names, _ = symbols(program)
    share = sum(name in names for name in listed) / len(listed)
    print(f"{share:.0%} of the {len(listed)} functions are in {program}, at least {LEAST_FOUND:.0%} should be")
    return 0 if share >= LEAST_FOUND else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="whether the order fits the program")
    args = parser.parse_args()
    program = args.program.resolve()
    if args.check:
        return check(program)
    write(order(program))
    return 0


if __name__ == "__main__":
    sys.exit(main())
