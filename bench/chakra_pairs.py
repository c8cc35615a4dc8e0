"""Random pairs of a PyTorch execution trace and a Kineto trace of the same run.

The pairs are unusual rather than typical. Each pair draws its own mix of schema versions, clocks, threads, streams,
collectives, synchronisations and defects. `make_pair(seed)` returns the two documents.

No two launches, kernels or ends of synchronisations are in one microsecond, because Chakra leaves their order to
numpy's unstable sort, whose result depends on the processor's instructions.
"""

import math
import random

PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
SCHEMAS = ["1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4"]
OPERATORS = ["aten::mm", "aten::add", "aten::relu", "aten::conv2d", "aten::copy_", "autograd::engine",
             "Optimizer.step#Adam.step", "## forward ##", "DataLoader", "aten::\u00e4\u200b"]
KERNELS = ["gemm_nn", "void at::elementwise<4, Add<float> >(int)", "reduce \"q\"", "softmax\\warp"]
COLLECTIVES = {"all_reduce": "AllReduce_Sum_f32_RING_LL", "all_gather": "AllGather_RING",
               "reduce_scatter": "ReduceScatter_Sum", "broadcast": "Broadcast_TREE",
               "all_to_all": "SendRecv", "send": "SendRecv", "recv": "SendRecv"}
TEXTS = ["", "plain", "it's", 'say "x"', "both ' and \"", "tab\tnew\nline", "back\\slash", "caf\u00e9",
         "\u4e2d\u6587", "\U0001f600", "\u200b\u2028", "\u0378", "\x7f"]
FLOATS = [0.0, -0.0, 1.5, 1e-05, 0.0001, 1e16, 123456789.125, 3.0e-320, 2.5e300, 0.1, float("inf"),
          float("nan")]


class Pair:
    def __init__(self, seed):
        self.random = random.Random(seed)
        r = self.random
        self.whole = r.random() < 0.35  # times are whole microseconds
        self.schema = r.choice(SCHEMAS)
        self.now = float(r.choice([1_700_000_000_000_000 if self.whole else 5_387_313_686_629,
                                   4_000_000, 2_500]))
        self.next_id = 2
        self.next_rf = 1
        self.next_external = 1
        self.next_correlation = r.choice([1, 1000])
        self.nodes = []
        self.events = []
        self.busy = {}  # stream: end of its last kernel
        self.recorded = []  # (correlation, stream) of events that may be waited for
        self.streams = r.sample([7, 13, 20, 24], r.randint(1, 3))
        self.rate = {
            "kernel": r.choice([0.2, 0.6]),
            "collective": r.choice([0, 0.1, 0.3]),
            "sync": r.choice([0, 0.1, 0.4]),
            "no_external": r.choice([0, 0, 0.2]),
            "unlinked": r.choice([0, 0, 0.05]),
            "orphan": r.choice([0, 0, 0.02]),
            "coalesced": r.choice([0, 0.1]),
            "gap": r.choice([0, 0.02, 0.1]),
        }

    def chance(self, what):
        return self.random.random() < self.rate[what]

    def pass_time(self, low, high):
        step = self.random.uniform(low, high)
        self.now += max(1.0, float(int(step))) if self.whole else step

    def time(self, value):
        return int(value) if self.whole else round(value, 3)

    def value(self, depth=0):
        """Returns a recorded argument as (value, shape, type, stride)."""
        r = self.random
        kind = r.randrange(8 if depth < 2 else 6)
        if kind == 0:
            shape = [r.randint(1, 64) for _ in range(r.randint(0, 3))]
            elements = 1
            for size in shape:
                elements *= size
            tensor = [r.randint(1, 900), r.randint(1, 90), r.randint(0, 5), elements, r.choice([2, 4, 8]),
                      r.choice(["cuda:0", "cpu"])]
            return tensor, shape, "Tensor(float)", [1] * len(shape)
        if kind == 1:
            return r.randint(-5, 10**r.randint(1, 25)), [], "Int", []
        if kind == 2:
            return r.choice(FLOATS), [], "Double", []
        if kind == 3:
            return r.choice([True, False]), [], "Bool", []
        if kind == 4:
            return None, [], "None", []
        if kind == 5:
            return r.choice(TEXTS), [], "String", []
        if kind == 6:
            parts = [self.value(depth=9) for _ in range(r.randint(0, 3))]
            parts = [p for p in parts if not p[2].startswith("Tensor")]
            return ([p[0] for p in parts], [p[1] for p in parts],
                    "GenericList[" + ",".join(p[2] for p in parts) + "]", [p[3] for p in parts])
        tensors = []
        while len(tensors) < r.randint(1, 3):
            made = self.value(depth=9)
            if made[2].startswith("Tensor"):
                tensors.append(made)
        return ([t[0] for t in tensors], [t[1] for t in tensors],
                "GenericList[" + ",".join(t[2] for t in tensors) + "]", [t[3] for t in tensors])

    def arguments(self, count):
        parts = [self.value() for _ in range(count)]
        made = {"values": [p[0] for p in parts], "shapes": [p[1] for p in parts],
                "types": [p[2] for p in parts]}
        if self.schema.startswith("1.1.1"):
            made["strides"] = [p[3] for p in parts]
        return made

    def node(self, name, parent, rf_id, more=()):
        r = self.random
        self.next_id += r.randint(1, 3)
        attrs = {"rf_id": ("uint64", rf_id), "fw_parent": ("uint64", 0), "seq_id": ("int64", r.randint(-1, 9)),
                 "scope": ("uint64", r.choice([0, 1, 7])), "tid": ("uint64", 1), "fw_tid": ("uint64", 0),
                 "op_schema": ("string", r.choice(TEXTS))}
        if not self.schema.startswith(("1.0.2", "1.0.3")):
            attrs["kernel_backend"] = ("string", "")
            attrs["kernel_file"] = ("string", "")
        attrs.update(more)
        self.nodes.append({
            "id": self.next_id, "name": name, "ctrl_deps": parent,
            "inputs": self.arguments(r.randint(0, 3)), "outputs": self.arguments(r.randint(0, 1)),
            "attrs": [{"name": k, "type": t, "value": v} for k, (t, v) in attrs.items()],
        })
        return self.nodes[-1]

    def event(self, cat, name, tid, start, duration, pid=4242, **args):
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": self.time(start),
                 "dur": self.time(duration), "args": {k.replace("_", " "): v for k, v in args.items()}}
        self.events.append(event)
        return event

    def call(self, name, tid, external, duration=None):
        """Adds a runtime call. Returns its correlation."""
        self.pass_time(1, 3)
        self.next_correlation += 1
        duration = duration or self.random.uniform(2, 6)
        event = self.event("cuda_runtime", name, tid, self.now, duration, correlation=self.next_correlation)
        event["args"]["External id"] = external
        if self.whole:
            duration = int(duration)
        self.now += duration
        self.pass_time(1, 2)
        return self.next_correlation

    def kernel(self, cat, name, stream, external, correlation, **args):
        duration = float(int(self.random.uniform(2, 80))) if self.whole else self.random.uniform(2, 80)
        start = max(self.busy.get(stream, 0), self.now + self.random.uniform(1, 9))
        start = float(int(start) + 1) if self.whole else start
        self.busy[stream] = start + duration + 1
        event = self.event(cat, name, stream, start, duration, pid=0, correlation=correlation, stream=stream,
                           device=0, **args)
        if not self.chance("no_external"):
            event["args"]["External id"] = external
        return event

    def synchronise(self, tid, external):
        r = self.random
        stream = r.choice(self.streams)
        kind = r.randrange(4)
        if kind == 0:
            self.recorded.append((self.call("cudaEventRecord", tid, external, 2.0), stream))
        elif kind == 1 and self.recorded:
            recorded, source = r.choice(self.recorded)
            waiting = self.call("cudaStreamWaitEvent", tid, external, 2.0)
            start = max(self.busy.get(stream, 0), self.now)
            self.busy[stream] = start + 3
            self.sync("Stream Wait Event", stream, start, 1.0, waiting, wait_on_stream=source,
                      wait_on_cuda_event_record_corr_id=recorded)
        elif kind == 2:
            wait = max(3.0, self.busy.get(stream, 0) - self.now + 2)
            call = self.call("cudaStreamSynchronize", tid, external, wait)
            self.sync("Stream Sync", stream, self.now - wait, wait - 1, call)
        else:
            wait = max([3.0] + [end - self.now + 2 for end in self.busy.values()])
            call = self.call("cudaDeviceSynchronize", tid, external, wait)
            event = self.sync("Context Sync", -1, self.now - wait, wait - 1, call)
            if r.random() < 0.5:
                del event["args"]["stream"]

    def sync(self, name, stream, start, duration, correlation, **args):
        event = self.event("cuda_sync", name, stream, start, duration, pid=0)
        event["args"] = {"stream": stream, "correlation": correlation, "device": 0, **args}
        return event

    def launches(self, tid, external):
        r = self.random
        for _ in range(r.choice([1, 1, 2])):
            stream = r.choice(self.streams)
            kind = r.randrange(10)
            if kind == 0:
                call = self.call("cudaMemsetAsync", tid, external)
                self.kernel("gpu_memset", "Memset (Device)", stream, external, call)
            elif kind == 1:
                call = self.call("cudaMemcpyAsync", tid, external)
                self.kernel("gpu_memcpy", "Memcpy DtoH", stream, external, call)
            else:
                call = self.call(r.choice(["cudaLaunchKernel", "cudaLaunchKernelExC"]), tid, external)
                if not self.chance("unlinked"):
                    self.kernel("kernel", r.choice(KERNELS), stream, external, call)
        if self.chance("unlinked"):
            self.kernel("kernel", "lost", self.streams[0], external, 10**7 + external)

    def collective(self, parent, tid):
        r = self.random
        kind = r.choice(list(COLLECTIVES))
        outer = "nccl:coalesced" if self.chance("coalesced") else f"nccl:{kind}"
        group = {} if r.random() < 0.4 else {"pg_name": ("string", r.choice(["0", "7"]))}
        with Open(self, outer, parent, tid) as (op, _):
            with Open(self, "record_param_comms", op["id"], tid, group) as (_, external):
                call = self.call("cudaLaunchKernelExC", tid, external)
                args = {} if r.random() < 0.3 else {"Process_Group_Name": r.choice(["0", "5"])}
                if outer == "nccl:coalesced" and COLLECTIVES[kind] == "SendRecv":
                    kind = "all_reduce"  # Chakra would not recognise it
                self.kernel("kernel", f"ncclDevKernel_{COLLECTIVES[kind]}(ncclDevComm*)", self.streams[-1],
                            external, call, **args)

    def operator(self, parent, tid, depth):
        r = self.random
        if self.chance("collective"):
            self.collective(parent, tid)
            return
        caller = 10**6 if self.chance("orphan") else parent
        with Open(self, r.choice(OPERATORS), caller, tid) as (node, external):
            children = r.randint(0, 3) if depth < 5 else 0
            for _ in range(children):
                self.operator(node["id"], tid, depth + 1)
            if children == 0 and self.chance("kernel"):
                self.launches(tid, external)
            if self.chance("sync"):
                self.synchronise(tid, external)

    def make(self):
        r = self.random
        root = self.node(PROCESS, 1, 0)
        root["id"] = 1
        tids = r.sample([4242, 4300, 4301, 77, 0], r.randint(1, 3))
        threads = [(self.node(THREAD, 1, 0)["id"], tid) for tid in tids]
        if r.random() < 0.5:
            self.node("## process_group:init ##", threads[0][0], 0)
        begin = self.now
        self.pass_time(3, 9)
        for step in range(r.choice([1, 1, 2, 3])):
            start = self.now
            self.pass_time(2, 5)
            for _ in range(r.randint(2, 9)):
                thread, tid = r.choice(threads)
                if self.chance("gap"):
                    self.pass_time(900, 2500)
                self.operator(thread, tid, 0)
                self.pass_time(1, 4)
            # Without a launch the analysis that Chakra uses fails.
            with Open(self, "aten::last", threads[0][0], tids[0]) as (_, external):
                call = self.call("cudaLaunchKernel", tids[0], external)
                self.kernel("kernel", "last", self.streams[0], external, call)
            self.pass_time(2, 5)
            self.event("user_annotation", f"ProfilerStep#{step + 4}", tids[0], start, self.now - start,
                       External_id=10**5 + step)
            self.pass_time(2, 5)
        if not self.settle():
            return None
        self.add_extras(begin, tids[0])
        return self.documents()

    def add_extras(self, begin, tid):
        r = self.random
        for event in list(self.events):
            if event["cat"] == "kernel" and r.random() < 0.5:
                arrow = {"id": event["args"]["correlation"], "pid": 0, "tid": event["tid"], "ts": event["ts"],
                         "cat": "ac2g", "name": "ac2g"}
                self.events.append({"ph": "s", **arrow})
                self.events.append({"ph": "f", "bp": "e", **arrow})
        if r.random() < 0.5:
            self.events.append({"ph": "M", "name": "process_name", "pid": 4242, "tid": tid,
                                "ts": self.time(begin), "args": {"name": "python"}})
        if r.random() < 0.5:
            self.events.append({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
                                "tid": "PyTorch Profiler", "ts": self.time(begin), "dur": self.time(50),
                                "args": {"Op count": 0}})
        if r.random() < 0.3:
            r.shuffle(self.events)

    def settle(self):
        """Moves starts of kernels and ends of synchronisations apart. Returns False if there is no room."""
        launches = {"cudaMemsetAsync", "cudaMemcpyAsync", "cudaLaunchKernel", "cudaLaunchKernelExC"}
        taken = set()
        for event in self.events:
            if event["name"] in launches:
                taken.add(math.ceil(event["ts"]))
        for event in self.events:
            kind = event["cat"]
            if kind not in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"):
                continue
            while (key := math.floor(event["ts"] + event["dur"]) if kind == "cuda_sync"
                   else math.ceil(event["ts"])) in taken:
                if event["dur"] < 2:
                    return False
                event["dur"] = self.time(event["dur"] - 1)
                if kind != "cuda_sync":
                    event["ts"] = self.time(event["ts"] + 1)
            taken.add(key)
        return True

    def documents(self):
        r = self.random
        nodes = list(self.nodes)
        if r.random() < 0.7:
            r.shuffle(nodes)
        host = {"schema": self.schema, "pid": 4242, "time": "2026-01-01 00:00:00", "start_ts": 5}
        if r.random() < 0.5:
            host["extra"] = {"list": [1, 2.50, "\u00e9"], "empty": {}}
        host["nodes"] = nodes
        host["finish_ts"] = 9
        device = {"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": self.events,
                  "traceName": "pair.json"}
        return host, device


class Open:
    """A host operator that runs during the block: its node and, usually, its event."""

    def __init__(self, pair, name, parent, tid, attrs=()):
        self.pair, self.tid = pair, tid
        pair.next_rf += 1
        pair.next_external += 1
        self.rf_id, self.external = pair.next_rf, pair.next_external
        self.node = pair.node(name, parent, self.rf_id, attrs)

    def __enter__(self):
        self.pair.pass_time(1, 4)
        self.start = self.pair.now
        self.pair.pass_time(1, 3)
        return self.node, self.external

    def __exit__(self, *_):
        pair = self.pair
        pair.pass_time(1, 3)
        if not pair.chance("unlinked"):
            event = pair.event(pair.random.choice(["cpu_op", "cpu_op", "user_annotation"]), self.node["name"],
                               self.tid, self.start, pair.now - self.start)
            event["args"] = {"External id": self.external, "Record function id": self.rf_id, "Ev Idx": 0}
        pair.pass_time(1, 3)


def make_pair(seed):
    """Returns the first pair with room for all its events, among those that begin with `seed`."""
    for attempt in range(1000):
        pair = Pair(f"{seed}.{attempt}").make()
        if pair is not None:
            return pair
    raise RuntimeError(f"no pair for seed {seed}")
