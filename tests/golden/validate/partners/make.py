"""Writes host and device traces of two ranks of a job over Gloo: process groups of the same ranks, a send and a
receive whose group the observer does not record, and all-reduces. Arguments: the folder to make, the number of
all-reduces, the process of rank 0."""
import json
import os
import sys

folder, reduces, process = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
GROUPS = json.dumps([{"pg_name": str(i), "pg_desc": "", "backend_config": "cpu:gloo", "ranks": [], "group_size": 2}
                     for i in range(3)])
TENSOR = [4, 5, 0, 256, 4, "cpu"]
WORK = "__torch__.torch.classes.c10d."
SCHEMAS = {
    "c10d::send": f"(Tensor[] tensors, {WORK}ProcessGroup process_group, int dst, int tag) -> {WORK}Work",
    "c10d::recv_": f"(Tensor[] tensors, {WORK}ProcessGroup process_group, int src, int tag) -> {WORK}Work",
    "c10d::allreduce_": f"(Tensor[] tensors, {WORK}ProcessGroup process_group) -> (Tensor[], {WORK}Work)",
}


def make(rank):
    nodes, events = [], []

    def node(name, parent, values=(), types=(), shapes=()):
        number = len(nodes) + 1
        schema = name + SCHEMAS[name] if name in SCHEMAS else ""
        nodes.append({
            "id": number, "name": name, "ctrl_deps": parent,
            "inputs": {"values": list(values), "shapes": list(shapes), "types": list(types)},
            "outputs": {"values": [], "shapes": [], "types": []},
            "attrs": [{"name": "rf_id", "type": "uint64", "value": number},
                      {"name": "tid", "type": "uint64", "value": 1},
                      {"name": "op_schema", "type": "string", "value": schema}]})
        return number

    def call(name, label, *values):
        types = ["Object"] + ["Int"] * len(values)
        above = node(name, 2, [[TENSOR], "<Object>", *values], ["GenericList[Tensor(float)]", *types],
                     [[[256]], [], *([] for _ in values)])
        below = node(label, above, [TENSOR], ["Tensor(float)"], [[256]])
        for number, start, time, kind in ((above, 0, 900, "cpu_op"), (below, 100, 700, "user_annotation")):
            events.append({"ph": "X", "cat": kind, "name": nodes[number - 1]["name"], "pid": process + rank,
                           "tid": 1, "ts": 1000 * above + start, "dur": time,
                           "args": {"Record function id": number}})

    node("[pytorch|profiler|execution_trace|process]", 1)
    node("[pytorch|profiler|execution_trace|thread]", 1)
    node("## process_group:init ##", 2, [GROUPS], ["String"], [[]])
    call("c10d::send", "gloo:send", 1 - rank, 0)
    call("c10d::recv_", "gloo:recv", 1 - rank, 0)
    for _ in range(reduces):
        call("c10d::allreduce_", "gloo:all_reduce")
    host = {"schema": "1.1.1-chakra.0.0.4", "pid": process + rank, "nodes": nodes}
    device = {"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2},
              "traceEvents": events}
    for name, trace in (("host", host), ("device", device)):
        with open(f"{folder}/{name}.{rank}.json", "w") as file:
            json.dump(trace, file)


os.makedirs(folder)
for one in (0, 1):
    make(one)
