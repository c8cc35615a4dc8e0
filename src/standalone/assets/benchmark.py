#!/usr/bin/env python3
"""Runs the benchmark of this folder and prints how long a step takes. Needs torch, nothing else.

    python benchmark.py [--iterations 20] [--warmup 5] [--threads N] [--device cpu] [--library FILE]
                        [--gaps recorded|none] [--json | --paced]

step.py contains the step's operators, step.data describes the memory that they work on, and gaps.data lists the time
between operators in the original program, which passes here as well unless disabled by --gaps none. README.md describes
the origin of the benchmark. A benchmark of several ranks is started by torchrun, and each rank runs one of the steps.
"""

import argparse
import importlib
import json
import os
import pathlib
import resource
import statistics
import sys
import time

import torch

import runtime


def whole(least, most):
    def number(text):
        if not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"found {text}, expected a whole number from {least} to {most}")
        return int(text)

    return number


def synchronize():
    if runtime.device().type != "cpu":
        torch.accelerator.synchronize()


def status_bytes(key):
    """Returns a figure of this process in bytes, such as its peak memory, "VmHWM:"."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return 1024 * int(line.split()[1])
    return -1


def serve_steps(run_step, memory, ranks, rank):
    """Runs one step for each line on standard input, on all ranks, and prints its figures as JSON."""
    if rank == 0:
        level = {"resident_before_steps_bytes": status_bytes("VmRSS:") - memory.state_bytes, "copied_bytes": 0}
        print(json.dumps({
            "device": str(runtime.device()), "torch": torch.__version__,
            "operators": {"total": memory.operators, "replayed": memory.operators_run},
            "coverage": {"time": memory.time_coverage}, "memory": level,
        }), flush=True)
    tell = ranks.tell if ranks else bool
    while tell(rank == 0 and sys.stdin.readline() != ""):
        memory.restore()
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = resource.getrusage(resource.RUSAGE_SELF)
        wall, cpu = run_step()
        after = resource.getrusage(resource.RUSAGE_SELF)
        if rank == 0:
            print(json.dumps({
                "pid": os.getpid(), "wall_ns": wall, "cpu_ns": cpu, "busy_gaps_ns": runtime.gaps.busy,
                "idle_gaps_ns": runtime.gaps.idle, "minor_faults": after.ru_minflt - before.ru_minflt,
                "voluntary_switches": after.ru_nvcsw - before.ru_nvcsw,
                "involuntary_switches": after.ru_nivcsw - before.ru_nivcsw, "peak_resident_bytes": status_bytes("VmHWM:"),
            }), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=whole(1, 10**9), default=20)
    parser.add_argument("--warmup", type=whole(0, 10**9), default=5)
    parser.add_argument("--threads", type=whole(1, 1024), help="number of threads (default: as recorded)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", action="append", default=[], help="load a shared library of operators")
    parser.add_argument("--gaps", choices=["recorded", "none"],
                        help="reproduce the recorded gaps between operators, or leave them out (default: recorded, if known)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--paced", action="store_true",
                        help="run one step per line of standard input, for `etude compare --run --benchmark`")
    args = parser.parse_args()
    folder = pathlib.Path(__file__).resolve().parent
    try:
        for library in args.library:
            torch.ops.load_library(library)
        runtime.run_on(args.device)
    except (RuntimeError, OSError) as error:
        raise SystemExit(f"benchmark.py: {str(error).splitlines()[0]}")
    ranks, rank, code, data, gaps = None, 0, "step", "step.data", "gaps.data"
    if (folder / "ranks.data").exists():
        import ranks
        rank, step_number, data_number = ranks.join(folder)
        code, data, gaps = f"step_{step_number}", f"step_{data_number}.data", f"gaps_{rank}.data"
    if args.gaps != "none" and (folder / gaps).exists():
        runtime.pass_gaps((folder / gaps).read_text())
    elif args.gaps == "recorded":
        raise SystemExit("benchmark.py: --gaps recorded: the gaps of the original program are unknown")
    step = importlib.import_module(code)
    try:
        memory = runtime.Memory((folder / data).read_text(), args.seed)
    except OSError as error:
        raise SystemExit(f"benchmark.py: {error.filename}: {error.strerror}")
    torch.set_num_threads(args.threads or memory.threads)

    def run_step():
        """Runs the step on this rank when all are ready. Returns wall and CPU time in nanoseconds."""
        torch.manual_seed(args.seed)  # each step draws the same numbers
        synchronize()
        if ranks:
            ranks.meet()
        begin, begin_cpu = time.perf_counter_ns(), time.process_time_ns()
        runtime.gaps.begin_step()
        runtime.freed_pages.begin_step()
        step.step(memory.slots)
        if ranks:
            ranks.wait_for_all()
        runtime.empty(memory.slots, memory.released)
        runtime.gaps.pass_next(calls=0)
        synchronize()
        return time.perf_counter_ns() - begin, time.process_time_ns() - begin_cpu

    if args.paced:
        serve_steps(run_step, memory, ranks, rank)
        if ranks:
            ranks.leave()
        return
    wall, cpu = [], []
    for i in range(args.warmup + args.iterations):
        memory.restore()
        wall_ns, cpu_ns = run_step()
        if i >= args.warmup:
            wall.append(wall_ns / 1e6)
            cpu.append(cpu_ns / 1e6)
    result = {
        "benchmark": folder.name, "language": "Python", "torch": torch.__version__, "device": str(runtime.device()),
        "threads": torch.get_num_threads(), "gaps": "recorded" if runtime.gaps.any() else "none", "steps": len(wall),
        "wall_ms": {"median": statistics.median(wall), "min": min(wall), "max": max(wall)},
        "cpu_ms": {"median": statistics.median(cpu), "min": min(cpu), "max": max(cpu)},
    }
    if ranks:
        told = ranks.gather([result["wall_ms"]["median"], result["cpu_ms"]["median"]])
        result["ranks"] = [{"rank": i, "wall_ms": one[0], "cpu_ms": one[1]} for i, one in enumerate(told)]
        ranks.leave()
    if rank != 0:
        return
    if args.json:
        print(json.dumps(result))
    else:
        for name in ("wall", "cpu"):
            figures = result[f"{name}_ms"]
            print(f"step, {name} time: median {figures['median']:.3f} ms, "
                  f"{figures['min']:.3f} to {figures['max']:.3f} ms, {len(wall)} steps")
        for one in result.get("ranks", []):
            print(f"rank {one['rank']}: wall time {one['wall_ms']:.3f} ms, cpu time {one['cpu_ms']:.3f} ms")


if __name__ == "__main__":
    main()
    if "ranks" in sys.modules:
        # Threads of Gloo's groups may still be active and abort a process that exits normally.
        sys.stdout.flush()
        os._exit(0)
