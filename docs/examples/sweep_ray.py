#!/usr/bin/env python3
"""Runs the parts of a sweep on a Ray cluster whose nodes share a file system, then prints the whole.

python sweep_ray.py SPEC DIR --shards 16
"""

import argparse
import pathlib
import subprocess
import sys

import ray


@ray.remote(num_cpus=1)
def run_shard(command, part, parts):
    return subprocess.call(
        command + ["--shard", f"{part}/{parts}", "--jobs", "1", "--quiet"], stdout=subprocess.DEVNULL
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--etude", default="etude", help="the program, on every node")
    parser.add_argument("--address", help="of the cluster (default: this machine alone)")
    args = parser.parse_args()
    ray.init(address=args.address)
    command = [args.etude, "sweep", str(args.spec.resolve()), "-o", str(args.folder.resolve())]
    parts = range(1, args.shards + 1)
    codes = ray.get([run_shard.remote(command, part, args.shards) for part in parts])
    ray.shutdown()
    failed = [code for code in codes if code not in (0, 1)]  # 1: a point is not done, which is kept
    return failed[0] if failed else subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main())
