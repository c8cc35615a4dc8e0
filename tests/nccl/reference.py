"""NCCL 2.30.7's cost model (src/graph/tuning.cc, and the choice in src/enqueue.cc), written again from its source.

Shares nothing with src/sim/machine: tests/nccl/compare.py compares both. Values are rounded to floats where NCCL
stores floats. It follows NCCL's order: first tables of bandwidths and latencies of all functions, then what is
disabled, then the time at a size.
"""

import dataclasses
import struct

ALGORITHMS = ("tree", "ring", "collnet direct", "collnet chain", "nvls", "nvls tree", "pat")
PROTOCOLS = ("LL", "LL128", "simple")
FUNCTIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")
ARCHITECTURES = ("volta", "ampere", "hopper", "blackwell")
CPUS = ("intel", "amd", "mixed", "other-x86", "power", "other")
PATHS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
NVL, NVB, PXB, PXN = (PATHS.index(name) for name in ("NVL", "NVB", "PXB", "PXN"))

BASE = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4), "pat": (8.0, 8.0, 8.0)}
HARDWARE = {
    "nvlink": {"tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4), "collnet direct": (0, 0, 3.7),
               "collnet chain": (0, 0, 2.8), "nvls": (0, 0, 25), "nvls tree": (0, 0, 25), "pat": (0, 0, 4.0)},
    "pci": {"tree": (1.0, 1.9, 4.0), "ring": (1.0, 2.5, 5.7), "collnet direct": (0, 0, 3.7),
            "collnet chain": (0, 0, 2.8), "nvls": (0, 0, 0), "nvls tree": (0, 0, 0), "pat": (0, 0, 4.0)},
    "net": {"tree": (5.0, 8.5, 14), "ring": (2.7, 4.0, 14.0), "collnet direct": (0, 0, 31),
            "collnet chain": (0, 0, 30), "nvls": (0, 0, 18), "nvls tree": (0, 0, 20.9), "pat": (0, 0, 14)},
}
LL_MAX = ((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.0, 90.0, 70.0))
RING_LL128 = ((20.0,) * 3, (20.0,) * 3, (36.7,) * 3, (40.0,) * 3)
TREE_LL128 = ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 29.0), (55.6, 31.67, 20.0))
TREE_SIMPLE = ((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0), (70.0, 42.8, 24.0))
NVLS_TREE = ((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (0.0, 57.7, 45.5), (0.0, 96.0, 80.0))
NVLS_EFFICIENCY = (0.0, 0.0, 0.85, 0.74)
CORRECTION = (
    "10 10 10 10 9 8 7 7 7 7 6 5 4 4 5 6 7 8 9 10 10 10 10 10",
    "10 10 10 10 10 9 8 8 8 7 6 6 6 6 6 6 8 9 9 9 9 10 10 10",
    "9 9 9 9 9 9 9 8 7 6 6 5 5 5 5 6 7 8 7 7 8 9 9 9",
)
CORRECTION = tuple(tuple(int(tenth) / 10 for tenth in row.split()) for row in CORRECTION)


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


@dataclasses.dataclass
class Graph:
    channels: int = 0
    intra: float = 0
    inter: float = 0
    intra_path: int = NVL
    inter_path: int = 0
    latency: float = 0
    same: bool = True


@dataclasses.dataclass
class Communicator:
    architecture: int
    cpu: str
    gathers: bool  # the CollNet plugin has all-gather and reduce-scatter, on a device for each GPU
    ranks: int
    nodes: int
    plain_tree: bool
    ring: Graph
    tree: Graph
    nvls: Graph
    direct: Graph
    chain: Graph


class Model:
    def __init__(self, comm):
        self.comm = comm
        self.collnet = comm.chain.channels > 0 and comm.nodes >= 2
        self.ring_channels = min(comm.ring.channels, comm.tree.channels)
        self.final_channels = self.count_channels()
        self.ppn = f32(comm.ranks / comm.nodes)
        self.bandwidths, self.latencies = {}, {}
        for function in FUNCTIONS:
            for algorithm in ALGORITHMS:
                for index, protocol in enumerate(PROTOCOLS):
                    self.tune(function, algorithm, index, protocol)
        self.disable()

    def count_channels(self):
        comm = self.comm
        channels = min(64, 2 * self.ring_channels)
        if self.collnet and comm.chain.intra > comm.chain.inter and comm.ranks > comm.nodes:
            channels = min(64, channels + channels // 2)
        if comm.architecture >= 2 and comm.nodes > 1 and comm.ring.intra > 45.0 and channels < 16:
            channels *= 2
        return channels

    def graph(self, algorithm):
        comm = self.comm
        found = {"ring": comm.ring, "collnet direct": comm.direct, "collnet chain": comm.chain, "nvls": comm.nvls,
                 "nvls tree": comm.nvls}.get(algorithm, comm.tree)
        if found is comm.ring or found is comm.tree:
            found = dataclasses.replace(found, channels=self.ring_channels)
        return found

    def steps(self, function):
        n = self.comm.ranks
        return {"all_reduce": 2 * (n - 1), "all_gather": n - 1, "reduce_scatter": n - 1}.get(function, n)

    def tune(self, function, algorithm, index, protocol):
        gathers = function in ("all_gather", "reduce_scatter")
        if function in ("broadcast", "reduce") and algorithm != "ring":
            return
        if gathers and algorithm not in ("pat", "ring", "nvls", "collnet direct"):
            return
        if function == "all_reduce" and algorithm == "pat":
            return
        if algorithm in ("nvls", "nvls tree") and (protocol != "simple" or self.graph(algorithm).channels < 2):
            return
        if algorithm == "pat" and (protocol != "simple" or self.comm.nodes != self.comm.ranks):
            return
        graph = self.graph(algorithm)
        if graph.channels == 0:
            return
        key = function, algorithm, index
        self.bandwidths[key] = self.bandwidth(function, algorithm, index, graph, gathers)
        self.latencies[key] = self.latency(function, algorithm, index, graph)

    def channel_speed(self, function, algorithm, graph):
        comm = self.comm
        if algorithm not in ("nvls", "nvls tree"):
            whole = comm.nodes <= 2 or algorithm.startswith("collnet")
            return f32(graph.intra if whole else graph.inter)
        intra = f32(f32(graph.intra) * f32(NVLS_EFFICIENCY[comm.architecture]))
        intra = f32(f32(intra * (graph.channels - 1)) / graph.channels)
        intra = f32(intra * (2.0 if function == "all_reduce" else f32(f32(self.ppn - 1) / self.ppn)))
        if algorithm == "nvls":
            return min(intra, f32(graph.inter))
        column = min(comm.nodes, 3) - 1
        inter = f32(graph.inter) * (2 if comm.nodes <= 2 else 1)
        return min(intra, f32(inter), f32(NVLS_TREE[comm.architecture][column]))

    def bandwidth(self, function, algorithm, index, graph, gathers):
        comm, channels = self.comm, graph.channels
        row, column = comm.architecture, min(comm.nodes, 3) - 1
        ll_row = row if comm.nodes == 1 else 1 if comm.cpu in ("amd", "mixed") else 0
        ll_max = LL_MAX[ll_row][column]
        bus = f32(channels * self.channel_speed(function, algorithm, graph))
        if algorithm == "ring" and index == 0:
            bus = f32(min(ll_max, bus * 0.5))
        if algorithm == "ring" and index == 1:
            bus = f32(min(bus * 0.92, channels * RING_LL128[row][column]))
        if algorithm == "tree":
            if function == "all_reduce":
                bus = f32(min(bus * 0.92, channels * TREE_SIMPLE[row][column]))
            if index == 0:
                bus = f32(min(bus / 3.8, ll_max))
            if index == 1:
                bus = f32(min(bus * (7 / 9 if comm.nodes == 1 else 120 / 128), channels * TREE_LL128[row][column]))
            if comm.plain_tree:
                bus = f32(bus * 0.85)
        if algorithm == "pat":
            bus = f32(bus * 0.75)
        if algorithm.startswith("collnet") and index != 2:
            bus = 0
        elif algorithm == "collnet direct" and gathers:
            bus = f32(self.ppn * min(f32(graph.intra), f32(f32(graph.inter) * f32(0.9))))
        elif algorithm == "collnet direct":
            factor = f32(self.ppn / channels)
            factor = f32(factor - f32(f32(factor - 1) / 2))
            bus = f32(bus / factor)
            if row >= 2:
                bus = f32(bus * 0.85)
        if algorithm in ("nvls", "collnet direct") and gathers and comm.nodes > 1:
            if not (self.collnet and comm.gathers):
                bus = 0
        if algorithm != "ring" and gathers:
            return bus
        if algorithm in ("ring", "nvls", "nvls tree"):
            return f32(bus * f32(comm.ranks / self.steps(function)))
        return f32(bus * 0.5)

    def link(self, hardware, algorithm, index):
        if (hardware, algorithm, index) == ("pci", "tree", 2) and self.comm.cpu == "power":
            algorithm = "ring"
        return f32(HARDWARE[hardware][algorithm][index])

    def latency(self, function, algorithm, index, graph):
        comm, nodes = self.comm, self.comm.nodes
        local = comm.ranks // nodes
        depth = nodes.bit_length() - 1
        total = f32(BASE.get(algorithm, (0, 0, 0))[index])
        within = "nvlink" if graph.intra_path == NVL else "pci"
        intra = self.link(within, algorithm, index)
        inter = self.link("net", "tree" if local == 1 else algorithm, index)
        for _ in range(2 if index == 2 else 1):
            inter = f32(inter + f32(graph.latency))
        steps = self.steps(function)
        if algorithm == "ring" and function in ("broadcast", "reduce"):
            place = within if nodes == 1 else "net"
            if graph.same:
                return f32(total + self.link(place, "ring", index))
            return f32(total + f32(steps * self.link(place, "tree" if index == 2 else "ring", index)))
        if algorithm == "ring":
            overhead = 0 if nodes == 1 else 2.0 if comm.cpu == "amd" else 1.0
            intra = max(intra, overhead * (3 if index == 2 else 1))
            between = (2 if function == "all_reduce" else 1) * (nodes - 1)
            return f32(total + f32(f32((steps - between) * intra) + f32(between * inter)))
        if algorithm == "tree":
            return f32(total + f32(2 * f32(f32((local - 1) * intra) + f32(depth * inter))))
        if algorithm == "collnet direct":
            return f32(total + (2 * (f32(min(1, local - 1) * intra) + (local - 1) * 0.4) + inter))
        if algorithm == "collnet chain":
            return f32(total + f32(f32(2 * (local - 1) * intra) + inter))
        if algorithm == "nvls":
            return f32(intra + inter) if nodes > 1 else intra
        if algorithm == "nvls tree":
            return f32(total + f32(intra + f32(2 * depth * inter)))
        return f32(total + (depth * (inter / 3.5) + comm.ranks * 2.8))

    def disable(self):
        comm = self.comm
        for key in list(self.bandwidths):
            function, algorithm, index = key
            graph = self.graph(algorithm)
            off = algorithm == "nvls tree" and comm.nodes == 1
            off |= not self.collnet and (algorithm.startswith("collnet") or (algorithm == "nvls" and comm.nodes > 1))
            off |= algorithm.startswith("collnet") and comm.ranks // comm.nodes > 8
            off |= algorithm.startswith("nvls") and function != "all_reduce" and comm.ranks // comm.nodes > 32
            if index == 1:
                off |= graph.inter_path > (PXN if comm.architecture >= 2 else PXB) or graph.intra_path > NVB
            if off:
                self.bandwidths[key] = 0

    def time(self, function, algorithm, index, size):
        """Returns the time in µs of `size` bytes, the larger one of input and output; None if NCCL ignores it."""
        comm = self.comm
        bandwidth = self.bandwidths.get((function, algorithm, index), 0)
        if bandwidth == 0:
            return None
        latency = self.latencies[function, algorithm, index]
        log = (size >> 6).bit_length() - 1
        if function == "all_reduce" and log >= 0:
            x86 = comm.cpu not in ("power", "other")
            if algorithm == "tree" and log < 23:
                bandwidth = f32(bandwidth * f32(CORRECTION[index][log]))
            if algorithm == "nvls tree" and log < 24 and comm.architecture == 3 and x86:
                bandwidth = f32(bandwidth * f32(CORRECTION[index][log]))
            if algorithm == "ring" and index == 2 and comm.nodes > 1:
                if size // (self.final_channels * comm.ranks) >= 64:
                    latency = f32(latency * (1.9 if comm.architecture == 0 else 1.4))
        return f32(latency + f32(f32(size) / f32(1000 * bandwidth)))

    def choose(self, function, size):
        """Returns algorithm, protocol and time of the choice, and the times of all candidates."""
        times = [self.time(function, a, p, size) for a in ALGORITHMS for p in range(len(PROTOCOLS))]
        best = min((place for place, time in enumerate(times) if time is not None), key=lambda place: times[place])
        return ALGORITHMS[best // 3], PROTOCOLS[best % 3], times[best], times
