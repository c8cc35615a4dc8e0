import json

NODE = {"inputs": {"values": [], "shapes": [], "types": []}, "outputs": {"values": [], "shapes": [], "types": []}}


def node(number, name, parent):
    rf_id = int(name[2:])
    attrs = [{"name": "rf_id", "type": "uint64", "value": rf_id}, {"name": "tid", "type": "uint64", "value": 1}]
    return {"id": number, "name": name, "ctrl_deps": parent, **NODE, "attrs": attrs}


def event(name, begin, duration):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": duration,
            "args": {"Record function id": int(name[2:])}}


ROOT = {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, **NODE, "attrs": []}
THREAD = {"id": 5, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1, **NODE,
          "attrs": [{"name": "tid", "type": "uint64", "value": 1}]}
nodes = [ROOT, THREAD, node(6, "op1", 5), node(7, "op2", 6), node(7, "op3", 6), node(8, "op4", 7)]
events = [event("op1", 0, 40), event("op2", 1, 9), event("op3", 11, 9), event("op4", 12, 5)]
with open("host.json", "w") as file:
    json.dump({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}, file)
with open("device.json", "w") as file:
    json.dump({"schemaVersion": 1, "traceEvents": events}, file)
