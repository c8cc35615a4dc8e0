"""Prints an execution trace in which two nodes call each other."""
import json

def node(i, parent):
    empty = {"values": [], "shapes": [], "types": []}
    attrs = [{"name": n, "type": "uint64", "value": 0} for n in ("rf_id", "fw_parent", "scope", "tid", "fw_tid")]
    return {"id": i, "name": f"op{i}", "ctrl_deps": parent, "inputs": empty, "outputs": empty, "attrs": attrs}

print(json.dumps({"schema": "1.0.3-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 0,
                  "nodes": [node(1, 1), node(2, 3), node(3, 2)], "finish_ts": 1}))
