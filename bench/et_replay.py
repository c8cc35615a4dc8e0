#!/usr/bin/env python3
"""Replays one execution trace with PARAM's et_replay, from an unchanged checkout, and prints a line of JSON.

    bench/et_replay.py CHECKOUT TRACE [--warmup 5] [--iterations 10]

`cpu_ms`: CPU time of each iteration; `operators`: number of operators that ran; `failed`: the reason why it stopped,
or null. et_replay calls torch.cuda on every device. On a machine without a GPU stand-ins return values, and a clock
replaces its events. Requires `pip install intervaltree pydot` in addition to torch.
"""

import argparse
import gzip
import json
import os
import pathlib
import sys
import tempfile
import time
import types


class Event:
    """A torch.cuda.Event on the host. et_replay records one before and one after each iteration."""

    cpu_s = []

    def __init__(self, **_):
        self.wall_s = 0.0

    def record(self, *_):
        self.wall_s = time.perf_counter()
        Event.cpu_s.append(time.process_time())

    def elapsed_time(self, end):
        return (end.wall_s - self.wall_s) * 1e3


def stand_in(torch):
    torch.cuda.Event = Event
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(total_memory=1 << 40, major=0, minor=0)
    for name in ("memory_reserved", "memory_allocated", "synchronize", "empty_cache", "set_device"):
        setattr(torch.cuda, name, lambda *_: 0)  # one each, because torch.compile keeps a table of them
    if not hasattr(torch._C, "_cuda_getCurrentRawStream"):
        torch._C._cuda_getCurrentRawStream = lambda *_: 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", help="of github.com/facebookresearch/param")
    parser.add_argument("trace", help="PyTorch's execution trace, plain or gzip")
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=10, help="at most 10: with more it fails (a variable without a value)")
    args = parser.parse_args()
    sys.path.insert(0, args.checkout)

    import torch

    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        stand_in(torch)
    found = {"cpu_ms": [], "operators": 0, "failed": None}
    # et_replay's own output goes to stderr.
    answer = os.dup(1)
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        content = pathlib.Path(args.trace).read_bytes()
        path.write_bytes(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        sys.argv = ["et_replay", "--input", str(path), "-m", "comp", "--cpu",
                    "--warmup-iter", str(args.warmup), "--iter", str(args.iterations)]
        try:
            from et_replay.tools.et_replay import ExgrReplayManager

            manager = ExgrReplayManager()
            manager.readComputeArgs()
            manager.initBench()
            run_op = manager.run_op

            def watched(node, *rest):
                result = run_op(node, *rest)
                if not result[0] and not found["failed"]:
                    found["failed"] = f"stops at {node.name}: {result[1]}".splitlines()[0][:200]
                return result

            manager.run_op = watched
            result = manager.benchTime()
            found["operators"] = len(manager.sorted_nodes)
            if isinstance(result, dict) and not result.get("execution finished"):
                found["failed"] = found["failed"] or "stops"
            pairs = zip(Event.cpu_s[::2], Event.cpu_s[1::2])
            found["cpu_ms"] = [(end - begin) * 1e3 for begin, end in pairs][args.warmup:]
        except (Exception, SystemExit) as error:
            found["failed"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    os.write(answer, (json.dumps(found) + "\n").encode())
    os._exit(0)


if __name__ == "__main__":
    main()
