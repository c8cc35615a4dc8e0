import json

NODE = {"inputs": {"values": [], "shapes": [], "types": []}, "outputs": {"values": [], "shapes": [], "types": []}}


def node(number, parent, **more):
    attrs = [{"name": "rf_id", "type": "uint64", "value": number}, {"name": "tid", "type": "uint64", "value": 1}]
    return {"id": number, "name": f"op{number}", "ctrl_deps": parent, **NODE, "attrs": attrs, **more}


nodes = [node(2, 1, sync_dep=[4]), node(3, 1), node(4, 1, sync_dep=[3]), node(1, [])]
print(json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}))
