"""Prints an execution trace with implausible numbers."""
import json

def node(i, parent, name, schema="", values=(), shapes=(), types=()):
    attrs = [("rf_id", "uint64", i), ("fw_parent", "uint64", 0), ("seq_id", "int64", -1),
             ("scope", "uint64", 0), ("tid", "uint64", 2**63), ("fw_tid", "uint64", 0), ("op_schema", "string", schema)]
    return {"id": i, "name": name, "ctrl_deps": parent,
            "inputs": {"values": list(values), "shapes": list(shapes), "types": list(types)},
            "outputs": {"values": [], "shapes": [], "types": []},
            "attrs": [{"name": n, "type": t, "value": v} for n, t, v in attrs]}

huge = 2**63 - 1
nodes = [
    node(2, 1, "[pytorch|profiler|execution_trace|thread]"),
    node(2**64 - 1, 2, "aten::relu", "aten::relu(Tensor self) -> Tensor",
         [[5, 6, 0, huge, 4, "cpu"]], [[huge, huge, huge]], ["Tensor(float)"]),
    node(4, 2, "aten::sum", "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
         [[5, 6, -1, 4, -4, "cpu"], "<None>"], [[-4], []], ["Tensor(float)", "None"]),
]
text = json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 0, "nodes": nodes, "finish_ts": 1})
print(text.replace('"pid": 1', '"pid": 1e999'))
