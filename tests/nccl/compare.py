#!/usr/bin/env python3
"""Compares Etude's NCCL model (dump.cc) with reference.py on groups drawn from a seed.

    tests/nccl/compare.py DUMP [--groups 700] [--seed 1]

Algorithm and protocol must be equal in all cases, and all times of candidates within 1e-4. Prints the number of cases.
"""

import argparse
import collections
import random
import subprocess
import sys

import reference
from reference import Communicator, Graph

TOLERANCE = 1e-4
SHAPES = [(nodes, gpus) for nodes in (1, 2, 3, 4, 5, 8, 16, 33, 64, 128) for gpus in (1, 2, 3, 4, 7, 8, 9, 16, 33)]
SPEEDS = (3, 6, 10, 12, 18, 20, 22, 24, 30, 40, 45, 48, 60, 80, 90, 96)
CHANNELS = (1, 2, 4, 6, 8, 10, 12, 16, 24, 32)
NEAR = (0.55, 0.1, 0.05, 0.02, 0.1, 0.05, 0.03, 0.05, 0.03, 0.02)  # of path kinds


def draw_graph(draw):
    intra = draw.choice(SPEEDS)
    inter = draw.choice([speed for speed in SPEEDS if speed <= intra * 2])
    paths = [draw.choices(range(len(NEAR)), NEAR)[0] for _ in range(2)]
    return Graph(draw.choice(CHANNELS), intra, inter, *paths, draw.choice((0, 0, 0, 1.5)), draw.random() < 0.6)


def draw_group(draw):
    nodes, gpus = draw.choice([shape for shape in SHAPES if shape != (1, 1)])
    ring = draw_graph(draw)
    tree = draw_graph(draw)
    if draw.random() < 0.7:
        tree.channels = ring.channels
    architecture = draw.randrange(4)
    nvls = draw_graph(draw) if architecture >= 2 and draw.random() < 0.7 else Graph()
    collnet = nodes > 1 and draw.random() < 0.4
    direct, chain = (draw_graph(draw), draw_graph(draw)) if collnet else (Graph(), Graph())
    return Communicator(architecture, draw.choice(reference.CPUS), draw.random() < 0.5, nodes * gpus, nodes,
                        draw.random() < 0.4, ring, tree, nvls, direct, chain)


def sizes_of(draw):
    small = [draw.randrange(1, 64)]
    return small + sorted({max(1, 2 ** draw.randrange(6, 34) + draw.choice((-1, 0, 1))) for _ in range(7)})


def graph_text(graph):
    return f"{graph.channels} {graph.intra} {graph.inter} {graph.intra_path} {graph.inter_path} {graph.latency} {int(graph.same)}"


def line_of(comm, function, size):
    head = (comm.architecture, reference.CPUS.index(comm.cpu), int(comm.gathers), comm.ranks, comm.nodes,
            reference.FUNCTIONS.index(function), size, int(comm.plain_tree))
    graphs = (comm.ring, comm.tree, comm.nvls, comm.direct, comm.chain)
    return " ".join([*map(str, head), *map(graph_text, graphs)])


def cases(groups, seed):
    draw = random.Random(seed)
    for _ in range(groups):
        comm = draw_group(draw)
        model = reference.Model(comm)
        for function in reference.FUNCTIONS:
            for size in sizes_of(draw):
                yield model, function, size


def differs(ours, expected):
    if expected is None:
        return ours != -1
    return abs(ours - expected) > TOLERANCE * expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", help="program etude_nccl_dump")
    parser.add_argument("--groups", type=int, default=700)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    drawn = list(cases(args.groups, args.seed))
    text = "\n".join(line_of(model.comm, function, size) for model, function, size in drawn) + "\n"
    rows = subprocess.run([args.dump], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    if len(rows) != len(drawn):
        sys.exit(f"compare: found {len(rows)} lines, expected {len(drawn)}")
    chosen, wrong, largest = collections.Counter(), 0, 0.0
    for (model, function, size), row in zip(drawn, rows):
        algorithm, protocol, micros, *times = row.split(",")
        bytes_ = size * model.comm.ranks if function == "all_gather" else size
        expected = model.choose(function, bytes_)
        chosen[f"{expected[0]} {expected[1]}"] += 1
        bad = (algorithm, protocol) != expected[:2] or differs(float(micros), expected[2])
        bad |= any(differs(float(ours), other) for ours, other in zip(times, expected[3], strict=True))
        largest = max(largest, abs(float(micros) / expected[2] - 1))
        if not bad:
            continue
        wrong += 1
        if wrong <= 5:
            print(f"{function} of {size} on {model.comm}: found {row}, expected {expected}", file=sys.stderr)
    print(f"{len(drawn)} cases, {wrong} differ, largest difference of times {largest:.1e}")
    print("choices: " + ", ".join(f"{name} {count}" for name, count in sorted(chosen.items())))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
