#!/usr/bin/env python3
"""Runs the benchmark of this folder and prints how long a step takes. Needs torch, nothing else.

    python benchmark.py [--iterations 20] [--warmup 5] [--threads N] [--device cpu] [--json]

step.py has the step's operators; step.data the memory that they work on. README.md says what the
benchmark stands for.
"""

import argparse
import json
import pathlib
import statistics
import time

import torch

import runtime
import step


def synchronize():
    if runtime.device().type != "cpu":
        torch.accelerator.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--threads", type=int, help="default: as recorded")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    runtime.run_on(args.device)
    folder = pathlib.Path(__file__).resolve().parent
    memory = runtime.Memory((folder / "step.data").read_text(), args.seed)
    torch.set_num_threads(args.threads or memory.threads)
    torch.manual_seed(args.seed)

    wall, cpu = [], []
    for i in range(args.warmup + args.iterations):
        memory.restore()
        synchronize()
        begin, begin_cpu = time.perf_counter_ns(), time.process_time_ns()
        step.step(memory.slots)
        runtime.empty(memory.slots, memory.released)
        synchronize()
        end, end_cpu = time.perf_counter_ns(), time.process_time_ns()
        if i >= args.warmup:
            wall.append((end - begin) / 1e6)
            cpu.append((end_cpu - begin_cpu) / 1e6)
    result = {
        "benchmark": folder.name, "language": "Python", "torch": torch.__version__, "device": str(runtime.device()),
        "threads": torch.get_num_threads(), "steps": len(wall),
        "wall_ms": {"median": statistics.median(wall), "min": min(wall), "max": max(wall)},
        "cpu_ms": {"median": statistics.median(cpu), "min": min(cpu), "max": max(cpu)},
    } if wall else {}
    if args.json:
        print(json.dumps(result))
    elif wall:
        for name in ("wall", "cpu"):
            figures = result[f"{name}_ms"]
            print(f"step, {name} time: median {figures['median']:.3f} ms, "
                  f"{figures['min']:.3f} to {figures['max']:.3f} ms, {len(wall)} steps")


if __name__ == "__main__":
    main()
