"""Four ranks with features that crash ASTRA-sim: make.py FOLDER writes linked.RANK.json."""

import json
import os
import sys

FLOAT = "Tensor(float)"


def io(*shapes):
    tensors = [[100 + i, 200 + i, 0, shape[0] * shape[1], 4, "cuda:0"] for i, shape in enumerate(shapes)]
    return {"values": tensors, "shapes": list(shapes), "types": [FLOAT] * len(shapes)}


class Rank:
    def __init__(self, rank):
        self.rank = rank
        self.nodes = [self.node(1, "[pytorch|profiler|execution_trace|process]", None), self.node(2, "thread", 1)]
        self.nodes[1]["name"] = "[pytorch|profiler|execution_trace|thread]"
        self.time = 0

    def node(self, number, name, parent, attrs=(), **more):
        attrs = [{"name": "rf_id", "type": "uint64", "value": number}, {"name": "tid", "type": "uint64", "value": 1},
                 *attrs]
        return {"id": number, "name": name, "ctrl_deps": parent, "inputs": io(), "outputs": io(), "attrs": attrs, **more}

    # An operator and the kernel that it launches.
    def launch(self, op, kernel, stream, duration, attrs=(), cat="kernel", **more):
        number = len(self.nodes) + 1
        self.time += 10
        schema = {"name": "op_schema", "type": "string", "value": op + "()"}
        self.nodes.append(self.node(number, op, 2, [schema, *attrs], ts=self.time, inclusive_dur=5, exclusive_dur=5, **more))
        attrs = [{"name": "stream", "type": "int64", "value": stream}, *attrs]
        self.nodes.append(self.node(number + 1, kernel, number, attrs, ts=self.time + 3, inclusive_dur=duration,
                                    exclusive_dur=duration, cat=cat, stream=stream, ph="X"))

    def communicate(self, name, kernel, elements, group, ranks, peer=None):
        attrs = [("collective_name", "string", name), ("dtype", "string", "Float"), ("in_msg_nelems", "uint64", elements),
                 ("out_msg_nelems", "uint64", elements), ("pg_name", "string", group), ("pg_size", "uint64", len(ranks)),
                 ("global_rank_start", "uint64", ranks[0]),
                 ("global_rank_stride", "uint64", ranks[1] - ranks[0] if len(ranks) > 1 else 0)]
        if peer is not None:
            attrs.append(("comm_dst" if name == "send" else "comm_src", "uint64", peer))
        attrs = [{"name": name, "type": kind, "value": value} for name, kind, value in attrs]
        self.launch("record_param_comms", "ncclDevKernel_" + kernel, 20, 9, attrs)


def make(rank):
    job = Rank(rank)
    job.launch("aten::mm", "gemm", 7, 8, inputs=io([64, 128], [128, 32]), outputs=io([64, 32]))
    job.launch("aten::relu", "relu", 7, 4, inputs=io([64, 32]), outputs=io([64, 32]))
    everybody = [0, 1, 2, 3]
    half = [rank // 2 * 2, rank // 2 * 2 + 1]
    job.communicate("allreduce", "AllReduce_Sum_f32", 4096, "0", everybody)
    job.communicate("allreduce", "AllReduce_Sum_f32", 512 + rank, "tp" + str(rank // 2), half)
    job.communicate("barrier", "AllReduce_Sum_i8", 0, "0", everybody)
    job.communicate("reduce", "Reduce_Sum_f32", 512, "0", everybody)
    job.communicate("all_gather", "AllGather", 2, "0", everybody)
    job.communicate("allreduce", "AllReduce_Sum_f32", 64, "me" + str(rank), [rank])
    if rank in (0, 2):
        job.communicate("send", "SendRecv", 100, "tp" + str(rank // 2), half, peer=half[1])
    if rank == 1:
        job.communicate("recv", "SendRecv", 100, "tp0", half, peer=0)
    job.launch("aten::add", "add", 7, 2, inputs=io([64, 32]), outputs=io([64, 32]))
    return {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": job.nodes}


os.makedirs(sys.argv[1], exist_ok=True)
for rank in range(4):
    with open(f"{sys.argv[1]}/linked.{rank}.json", "w", encoding="utf-8") as file:
        json.dump(make(rank), file)
