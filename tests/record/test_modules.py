"""The native recorder records the module of each call."""

import collections
import json

from test_native import NATIVE, attributes, etude, linked, operators
from conftest import program

NET = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.act = nn.Linear(8, 8), nn.ReLU()
    def forward(self, x):
        return self.act(self.fc(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])
        self.again = self.layers[0]
        self.head = nn.Linear(8, 4)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(self.again(x))

plain_call = nn.Module.__call__
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loss = nn.MSELoss()

def step(net=net):
    optimizer.zero_grad()
    loss(net(torch.randn(5, 8)), torch.randn(5, 4)).backward()
    optimizer.step()
"""


def record(run, tmp_path, text, **keywords):
    environment = {**NATIVE, **keywords.pop("environment", {})}
    result = run(program(NET + text), environment=environment, **keywords)
    assert result.code == 0, result.err
    path = result.folder / "capture.0.etude"
    etude("validate", "--strict", path)
    return result, linked(path, tmp_path)


def labels(nodes):
    """Returns the labels in the order of their begin, each with the label above it."""
    names = {node["id"]: node["name"] for node in nodes}
    parents = {node["id"]: node["ctrl_deps"] for node in nodes}
    found = []
    for node in sorted(nodes, key=lambda node: node["id"]):
        if not node["name"].startswith("nn.Module: "):
            continue
        above = node["ctrl_deps"]
        while above in names and parents[above] != above and not names[above].startswith("nn.Module: "):
            above = parents[above]
        around = names.get(above, "")
        found.append((node["name"][11:], around[11:] if around.startswith("nn.Module: ") else ""))
    return found


FORWARD = [
    ("Net", ""),
    ("Net.layers.0 (Block)", "Net"),
    ("Net.layers.0.fc (Linear)", "Net.layers.0 (Block)"),
    ("Net.layers.0.act (ReLU)", "Net.layers.0 (Block)"),
    ("Net.layers.1 (Block)", "Net"),
    ("Net.layers.1.fc (Linear)", "Net.layers.1 (Block)"),
    ("Net.layers.1.act (ReLU)", "Net.layers.1 (Block)"),
    ("Net.layers.0 (Block)", "Net"),
    ("Net.layers.0.fc (Linear)", "Net.layers.0 (Block)"),
    ("Net.layers.0.act (ReLU)", "Net.layers.0 (Block)"),
    ("Net.head (Linear)", "Net"),
    ("MSELoss", ""),
]


def test_paths_and_classes(run, tmp_path):
    source = """
for _ in range(12): step()
print(torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl)
"""
    result, nodes = record(run, tmp_path, source)
    assert labels(nodes) == FORWARD
    assert result.out.split() == ["True"]
    (below,) = {n["ctrl_deps"] for n in nodes if n["name"] == "nn.Module: Net.head (Linear)"}
    assert next(n["name"] for n in nodes if n["id"] == below) == "nn.Module: Net"
    # Backward work counts for the module of its forward operator.
    (modules,) = [json.loads(etude("stats", "--json", result.folder / "capture.0.etude"))["modules"]]
    head = next(row for row in modules if row["module"] == "nn.Module: Net.head (Linear)")
    below_label = {n["id"] for n in nodes if n["ctrl_deps"] in ids_of(nodes, "nn.Module: Net.head (Linear)")}
    assert head["operators"] > len(below_label) + 4
    sliced = tmp_path / "head.json"
    etude("slice", "-q", result.folder / "capture.0.etude", "--module", "head", "-o", sliced)
    names = {node["name"] for node in json.loads(sliced.read_text())["nodes"]}
    assert "aten::addmm" in names and "aten::relu" not in names


def ids_of(nodes, name):
    return {node["id"] for node in nodes if node["name"] == name}


def test_off(run, tmp_path):
    off = {"ETUDE_RECORD_MODULES": "0"}
    _, without = record(run, tmp_path, "for _ in range(12): step()\n", environment=off)
    assert labels(without) == []


def test_replays_as_without(run, tmp_path):
    texts = []
    for environment in ({"ETUDE_RECORD_MODULES": "0"}, {}):
        result, nodes = record(run, tmp_path, "for _ in range(12): step()\n", environment=environment)
        replayed = json.loads(etude("replay", "--iterations", 3, "--json", result.folder))
        texts.append(json.dumps(replayed["replays"][0]["coverage"] if "replays" in replayed else replayed["coverage"]))
        for path in result.folder.iterdir():
            path.unlink()
    assert texts[0] == texts[1]


def test_exceptions_end_labels(run, tmp_path):
    source = """
class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("no")
net.fails = Fails()
for _ in range(12):
    optimizer.zero_grad()
    try:
        net.fails(1)
    except ValueError as error:
        pass
    net(torch.randn(5, 8)).sum().backward()
    optimizer.step()
"""
    _, nodes = record(run, tmp_path, source)
    assert labels(nodes) == [("Net.fails (Fails)", ""), *FORWARD[:-1]]


def test_recomputed_in_backward(run, tmp_path):
    source = """
from torch.utils.checkpoint import checkpoint
for _ in range(12):
    optimizer.zero_grad()
    net.head(checkpoint(net.layers[1], torch.randn(5, 8), use_reentrant=False)).sum().backward()
    optimizer.step()
"""
    _, nodes = record(run, tmp_path, source)
    # The program never calls Net, so the modules that it calls are outermost.
    block = [("Block", ""), ("Block.fc (Linear)", "Block"), ("Block.act (ReLU)", "Block")]
    assert labels(nodes) == [*block, ("Linear", ""), *block]


def test_several_models_and_wrappers(run, tmp_path):
    source = """
import torch.distributed as dist
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
wrapped = nn.parallel.DistributedDataParallel(net)
other = Net()
for _ in range(12):
    with torch.no_grad():
        other(torch.randn(5, 8))
    step(wrapped)
dist.destroy_process_group()
"""
    _, nodes = record(run, tmp_path, source)
    found = [name for name, _ in labels(nodes)]
    assert found[0] == "Net" and found[11:13] == ["Net#2 (DistributedDataParallel)", "Net#2 (Net)"]
    assert found[13] == "Net#2.layers.0 (Block)"


def test_threads(run, tmp_path):
    source = """
import threading
others = [Block() for _ in range(3)]
for _ in range(12):
    threads = [threading.Thread(target=lambda m=m: [m(torch.randn(5, 8)) for _ in range(20)]) for m in others]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    step()
"""
    _, nodes = record(run, tmp_path, source)
    counts = collections.Counter(name for name, _ in labels(nodes))
    assert counts["Net"] == 1
    assert sum(counts[name] for name in counts if name.startswith("Block") and "." not in name) == 60
    for name, around in labels(nodes):
        root = name.split(".")[0].split(" ")[0]
        assert not around or around.split(".")[0].split(" ")[0] == root


def test_compiled_modules_stay_compiled(run, tmp_path):
    source = """
from torch._dynamo.utils import counters
net.layers[1] = torch.compile(net.layers[1], backend="aot_eager")
seen = []
for _ in range(12):
    step()
    seen.append((counters["frames"]["total"], counters["stats"]["unique_graphs"]))
print(len(set(seen[1:])))
"""
    result, nodes = record(run, tmp_path, source)
    assert result.out.split() == ["1"]
    found = labels(nodes)
    assert ("Net.layers.1 (Block)", "Net") in found
    assert not any("GraphModule" in name or "layers.1.fc" in name for name, _ in found)


def test_compiled_as_a_whole_in_the_recorded_step(run, tmp_path):
    # Functions compiled during the recording contain no code of the recorder.
    source = """
late = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
for index in range(12):
    if index >= 5:
        compiled = torch.compile(late, backend="aot_eager", fullgraph=True, dynamic=False)
        compiled(torch.randn(index, 8))
    step()
"""
    _, nodes = record(run, tmp_path, source)
    assert ("Sequential", "") in labels(nodes)
    assert FORWARD[0] in labels(nodes)


def test_copies_and_pickles_as_before(run, tmp_path):
    source = """
import copy, pickle
for _ in range(12):
    copied = copy.deepcopy(net)
    pickle.dumps(copied.state_dict())
    pickle.dumps(copied.head)
    step()
"""
    _, nodes = record(run, tmp_path, source)
    assert labels(nodes) == FORWARD


# A module whose parts have names that are hard to write. MORE: its other methods.
HARD_NAMES = r'''
strange = nn.ModuleDict({'a "b" \\ c': nn.Linear(8, 8), "é": nn.ReLU()})
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = strange
MORE    def forward(self, x):
        for part in self.parts.values():
            x = part(x)
        return x
own = Own()
for _ in range(12):
    own(torch.randn(5, 8))
    step()
'''


def test_names_that_are_hard(run, tmp_path):
    own_way = """    def named_modules(self, *args, **kwargs):
        raise RuntimeError("mine")
"""
    _, nodes = record(run, tmp_path, HARD_NAMES.replace("MORE", own_way))
    assert ("Own", "") in labels(nodes) and ("Linear", "Own") in labels(nodes)


def test_hard_names_survive_other_formats(run, tmp_path):
    result, nodes = record(run, tmp_path, HARD_NAMES.replace("MORE", ""))
    name = 'Own.parts.a "b" \\ c (Linear)'
    assert (name, "Own") in labels(nodes) and ("Own.parts.é (ReLU)", "Own") in labels(nodes)
    etude("convert", "-q", "--to", "pytorch", result.folder, "-o", tmp_path / "pair")
    host = json.loads((tmp_path / "pair/host.0.json").read_text())["nodes"]
    device = json.loads((tmp_path / "pair/device.0.json").read_text())["traceEvents"]
    (node,) = [node for node in host if node["name"] == f"nn.Module: {name}"]
    (event,) = [event for event in device if event["name"] == f"nn.Module: {name}"]
    assert event["args"]["Record function id"] == attributes(node)["rf_id"]
