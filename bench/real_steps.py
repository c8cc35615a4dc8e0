"""Comparison of a recorded step of bench/gpt_jobs.py with the one that `etude generate llm` makes of the same model
and plan.

Each known difference between the two is a named term. Without its terms each quantity is the same.
"""

import collections
import dataclasses
import json
import math
import re
import subprocess

from real_jobs import RANKS

BYTES = 4  # of an element: all is in single precision

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}
ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
# Calls, and the argument that is the rank's input.
CALLS = {
    "c10d::allreduce_": ("all_reduce", 0),
    "c10d::_allgather_base_": ("all_gather", 1),
    "c10d::allgather_into_tensor_coalesced_": ("all_gather", 1),
    "c10d::_reduce_scatter_base_": ("reduce_scatter", 1),
    "c10d::reduce_scatter_tensor_coalesced_": ("reduce_scatter", 1),
    "c10d::send": ("send", 0),
    "c10d::recv_": ("recv", 0),
}
CHAKRA_TYPES = {"0": "all_reduce", "1": "reduce", "2": "all_gather", "3": "gather", "7": "reduce_scatter"}


@dataclasses.dataclass
class Step:
    """The work of one rank. Products are pairs of operations and bytes, those of attention only operations."""

    passes: str = ""  # F and B of each layer's attention, in order
    forward: list = dataclasses.field(default_factory=list)
    backward: list = dataclasses.field(default_factory=list)
    attention_forward: list = dataclasses.field(default_factory=list)
    attention_backward: list = dataclasses.field(default_factory=list)
    embedded: int = 0  # elements that the lookups give
    embedded_backward: int = 0
    logits: int = 0
    updated: int = 0  # parameters
    communication: list = dataclasses.field(default_factory=list)  # type and bytes, in the order of the calls
    messages: dict = dataclasses.field(default_factory=dict)  # by send or recv: place of the rank, F or B and micro-batch
    terms: dict = dataclasses.field(default_factory=dict)  # generated: amounts that were subtracted, by quantity and name


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def chakra_nodes(etude, path):
    return json.loads(run(etude, "jsonize", path))["nodes"]


def attributes(node):
    """Returns attributes of Chakra's JSON by name, where numbers are strings."""
    return {attr["name"]: next(v for k, v in attr.items() if k != "name") for attr in node.get("attr", [])}


# ---- recorded


def elements(shape):
    return math.prod(shape) if all(isinstance(size, int) for size in shape) else sum(map(elements, shape))


class Recorded:
    """The nodes of a linked trace."""

    def __init__(self, path):
        self.nodes = json.loads(path.read_text())["nodes"]
        self.by_id = {node["id"]: node for node in self.nodes}

    def ancestors(self, node):
        seen = {node["id"]}
        while True:
            parents = node["ctrl_deps"]
            parent = parents[0] if isinstance(parents, list) else parents
            if parent in seen or parent not in self.by_id:
                return
            seen.add(parent)
            node = self.by_id[parent]
            yield node

    def innermost(self, names):
        """Returns the nodes of these names without those that have such a node below them. For a DTensor's operators
        these are those on the shards."""
        found = [node for node in self.nodes if node["name"] in names]
        callers = {caller["id"] for node in found for caller in self.ancestors(node)}
        return sorted((node for node in found if node["id"] not in callers), key=lambda node: node["ts"])

    def is_backward(self, node):
        return any(caller["name"].startswith("autograd::engine") for caller in self.ancestors(node))


def product(node):
    """Returns operations and bytes of a matrix product, by its shapes."""
    shapes, (out,) = node["inputs"]["shapes"], node["outputs"]["shapes"]
    left = shapes[0 if node["name"] in ("aten::mm", "aten::bmm") else 1]
    tensors = [shape for shape in shapes if shape] + [out]
    return 2 * elements(out) * left[-1], BYTES * sum(map(elements, tensors))


def attention(node):
    """Returns operations of all pairs, because operators do not show what a mask omits."""
    backward = node["name"] != ATTENTION
    sequences, heads, length, size = node["inputs"]["shapes"][1 if backward else 0]
    return (10 if backward else 4) * sequences * heads * length * length * size


def recorded_step(path, tensor):
    """Returns the step of a linked trace. `tensor`: ranks that share the vocabulary."""
    trace = Recorded(path)
    step = Step()
    for node in trace.innermost({*PRODUCTS, ATTENTION, ATTENTION + "_backward"}):
        backward = trace.is_backward(node)
        if node["name"] in PRODUCTS and node["name"] != "aten::bmm":
            (step.backward if backward else step.forward).append(product(node))
            continue
        operations = product(node)[0] if node["name"] == "aten::bmm" else attention(node)
        (step.attention_backward if backward else step.attention_forward).append(operations)
        step.passes += "B" if backward else "F"
    for node in trace.innermost({"aten::embedding"}):
        step.embedded += elements(node["outputs"]["shapes"][0])
    for node in trace.innermost({"aten::embedding_dense_backward"}):
        step.embedded_backward += elements(node["inputs"]["shapes"][0])
    for node in trace.innermost({"aten::_log_softmax"}):
        step.logits += elements(node["inputs"]["shapes"][0]) // tensor  # a DTensor's shape is that of the whole
    for node in trace.innermost({"aten::_fused_adam_"}):
        step.updated += elements(node["inputs"]["shapes"][0])
    for node in trace.innermost(set(CALLS)):
        kind, argument = CALLS[node["name"]]
        step.communication.append((kind, BYTES * elements(node["inputs"]["shapes"][argument])))
        for caller in trace.ancestors(node):
            # Messages of pipelines with several chunks.
            if label := re.fullmatch(r"PP:(\d+)(?:SEND|RECV)_([FB])(\d+)", caller["name"]):
                place, of, micro_batch = label.groups()
                step.messages.setdefault(kind, []).append((int(place), of, int(micro_batch)))
    return step


def counted_operations(etude, path):
    """Returns operations of products and attention as `etude convert --compute flops` counted them."""
    names = {*PRODUCTS, ATTENTION, ATTENTION + "_backward"}
    counts = [int(attributes(node)["num_ops"]) for node in chakra_nodes(etude, path) if node["name"] in names]
    # For DTensors the operators on the shards count. The others have the minimum that ASTRA-sim runs.
    return sorted(count for count in counts if count > 1)


# ---- generated


class Generated:
    """The step of a rank, and the terms of its known differences."""

    def __init__(self, shapes, tensor, places):
        self.shapes = shapes
        self.places = places  # of a pipeline's chunks
        self.step = Step()
        hidden, ffn, words = shapes.hidden, shapes.ffn // tensor, -(-shapes.vocabulary // tensor)
        self.rows = shapes.sequences * shapes.sequence
        self.pairs = shapes.sequences * shapes.heads // tensor * shapes.sequence**2
        self.used_pairs = self.pairs * (shapes.sequence + 1) // (2 * shapes.sequence)
        self.head_size = hidden // shapes.heads
        self.query = self.rows * hidden // tensor
        # In and out.
        self.matrices = {
            "qkv": (hidden, 3 * hidden // tensor),
            "projection": (hidden // tensor, hidden),
            "up": (hidden, ffn),
            "down": (ffn, hidden),
            "head": (hidden, words),
        }

    def term(self, quantity, name, value):
        if value:
            terms = self.step.terms.setdefault(quantity, collections.Counter())
            terms[name] += value
        return value

    def product(self, quantity, name, operations, size, is_weight_gradient):
        rows_in, out = self.matrices[name]
        biases = name in ("qkv", "up")
        # Operators of products with a bias count no addition, and a separate operator sums a bias's gradient.
        if biases and not name.endswith("gradient") and quantity == "forward" or biases and is_weight_gradient:
            operations -= self.term(f"operations {quantity}", "biases", self.rows * out)
        if is_weight_gradient:
            if biases:
                size -= self.term(f"bytes {quantity}", "biases", 2 * BYTES * out)
            # It is added to the result of earlier micro-batches. The first one finds none, and others add in a separate
            # operator.
            size -= self.term(f"bytes {quantity}", "gradients added to", BYTES * rows_in * out)
        elif quantity == "forward" and name in ("projection", "down"):
            # The residual reads the bias.
            size -= self.term(f"bytes {quantity}", "biases", -BYTES * out)
        getattr(self.step, quantity).append((operations, size))

    def attention(self, quantity, operations, softmax, per_pair):
        """Handles fused attention: the softmax, and the masked pairs."""
        what = f"attention {quantity}"
        operations -= self.term(what, "softmax", softmax)
        operations -= self.term(what, "masked pairs", -per_pair * (self.pairs - self.used_pairs))
        self.core(quantity, operations)

    def core(self, quantity, *operations):
        getattr(self.step, f"attention_{quantity}").extend(operations)
        self.step.passes += {"forward": "F", "backward": "B"}[quantity] * len(operations)

    def add(self, node):
        facts = attributes(node)
        step = self.step
        if "comm_size" in facts:
            kind = {"COMM_SEND_NODE": "send", "COMM_RECV_NODE": "recv"}.get(node["type"])
            kind = kind or CHAKRA_TYPES[facts.get("comm_type", "0")]
            size = int(facts["comm_size"])
            for name, what in (("input all_gather", "again for weights"), ("common gradients all_reduce", "of a unit")):
                if name in node["name"]:
                    self.term(f"{kind} calls", what, 1)
                    self.term(f"{kind} bytes", what, size)
                    return
            step.communication.append((kind, size))
            if kind in ("send", "recv"):
                of = "F" if "activations" in node["name"] else "B"
                # The tag contains the micro-batch and the sender's place.
                micro_batch, sender = divmod(int(facts["comm_tag"]) // 2, self.places)
                place = sender if kind == "send" else sender + (1 if of == "F" else -1)
                step.messages.setdefault(kind, []).append((place, of, micro_batch))
            return
        operations, size = int(facts.get("num_ops", 0)), int(facts.get("tensor_size", 0))
        words = node["name"].split(" #")[0].split()
        unit, work = (words[:2], words[2:]) if words[0] == "layer" else (words[:1], words[1:])
        name = " ".join(work)
        of = name.removesuffix(" input gradient").removesuffix(" weight gradient")
        if name == "":
            step.updated += operations // 14  # the optimizer
        elif of in self.matrices:
            quantity = "forward" if of == name else "backward"
            self.product(quantity, of, operations, size, name.endswith("weight gradient"))
        elif name == "attention":
            self.attention("forward", operations, 6 * self.used_pairs, 4 * self.head_size)
        elif name == "attention backward":
            self.attention("backward", operations, 8 * self.used_pairs + 2 * self.query, 10 * self.head_size)
        elif name in ("attention scores", "attention values"):
            self.core("forward", operations)
        elif name in ("attention scores backward", "attention values backward"):
            self.core("backward", operations // 2, operations // 2)  # two products
        elif name == "embedding lookup":
            step.embedded += (size - 8 * self.rows) // (2 * BYTES)  # indices, and each element read and written
        elif name == "embedding weight gradient":
            step.embedded_backward += operations
        elif name == "loss softmax":
            step.logits += operations // 3


    def add_norms(self):
        """Adds the sums of a DTensor's optimizer: gradients of norms that ranks have for their tokens, one weight at
        a time. Biases after a reduction need no sum, because their gradient covers all tokens. A rank has the share
        of learned positions that its tokens need, here all.
        """
        shapes = self.shapes
        calls = 2 * (2 * shapes.layers + 1)
        self.term("all_reduce calls", "of a norm", -calls)
        self.term("all_reduce bytes", "of a norm", -calls * BYTES * shapes.hidden)
        self.step.communication += [("all_reduce", BYTES * shapes.hidden)] * calls
        positions = shapes.sequence * shapes.hidden
        self.step.updated -= self.term("parameters", "positions", positions - positions // RANKS)


def generated_steps(etude, job, folder):
    """Returns the step of each rank."""
    shapes = job.shapes
    (folder / "gpt.toml").write_text(shapes.toml())
    run(
        etude, "generate", "llm", folder / "gpt.toml", "-o", folder / "gpt", "--sequences", shapes.sequences,
        "--attention", "fused" if shapes.fused else "unfused", *job.options,
    )  # fmt: skip
    steps = []
    for path in sorted(folder.glob("gpt.*.et")):
        generated = Generated(shapes, tensor_ranks(job), RANKS * job.arguments.get("chunks", 1))
        for node in chakra_nodes(etude, path):
            generated.add(node)
        if job.arguments.get("sequence"):
            generated.add_norms()
        steps.append(generated.step)
    return steps * (RANKS // len(steps))


def tensor_ranks(job):
    return job.options[job.options.index("--tp") + 1] if "--tp" in job.options else 1


# ---- both


def padded_sizes(job):
    """Returns bytes of generated collectives, and of recorded ones. fully_shard pads each weight to rows for all
    ranks, and the generator pads a unit. This concerns embedding and head as separate units, because layers have no
    odd rows.
    """
    shapes = job.shapes
    sizes = {}
    if job.arguments.get("ends"):
        words, vector = (shapes.vocabulary, shapes.hidden), (shapes.hidden, 1)
        for unit in ([words, (shapes.sequence, shapes.hidden)], [words, vector, vector]):
            plain = BYTES * -(-sum(rows * columns for rows, columns in unit) // RANKS)
            padded = BYTES * sum(-(-rows // RANKS) * columns for rows, columns in unit)
            sizes["all_gather", plain] = padded
            sizes["reduce_scatter", RANKS * plain] = RANKS * padded
    return sizes


def add_sharing_terms(step, job, rank):
    """Adds the effect of fully_shard's rows on collectives and on the parameters of a rank."""
    sizes = padded_sizes(job)
    calls = []
    for kind, size in step.communication:
        calls.append((kind, sizes.get((kind, size), size)))
        if calls[-1][1] != size:
            step.terms.setdefault(f"{kind} bytes", collections.Counter())["padded rows"] += size - calls[-1][1]
    step.communication = calls
    odd = job.shapes.vocabulary % RANKS
    if sizes and odd:
        # The first ranks have one more row of embedding and head. The generator's ranks have equal shares.
        more = 2 * job.shapes.hidden * ((rank < odd) * RANKS - odd) // RANKS
        step.terms["parameters"] = collections.Counter({"padded rows": -more})
        step.updated += more


def quantities(step):
    """Returns numbers to compare, by name."""
    found = {}
    for name in ("forward", "backward"):
        works = getattr(step, name)
        found[f"products {name}"] = len(works)
        found[f"operations {name}"] = sum(operations for operations, _ in works)
        found[f"bytes {name}"] = sum(size for _, size in works)
        found[f"attention {name}"] = sum(getattr(step, f"attention_{name}"))
    found |= {"embedding": step.embedded, "embedding backward": step.embedded_backward}
    found |= {"logits": step.logits, "parameters": step.updated}
    for kind in sorted({kind for kind, _ in step.communication}):
        sizes = [size for of, size in step.communication if of == kind]
        found |= {f"{kind} calls": len(sizes), f"{kind} bytes": sum(sizes)}
    return found


@dataclasses.dataclass
class Row:
    name: str
    recorded: int
    generated: int
    terms: dict  # of what is generated, that which is not recorded

    @property
    def explained(self):
        return self.recorded == self.generated - sum(self.terms.values())


@dataclasses.dataclass
class Comparison:
    """The comparison of one rank."""

    rows: list
    same: dict  # by what has to be the same one by one: whether it is


def compare(etude, capture, job, folder):
    """Compares each rank. `capture`: the folder from bench/real_programs.py; `folder`: for intermediate files."""
    run(etude, "convert", "-q", capture, "--to", "linked", "-o", folder / "linked")
    run(etude, "convert", "-q", capture, "--for", "astra-sim", "--compute", "flops", "-o", folder / "counted")
    comparisons = []
    for rank, generated in enumerate(generated_steps(etude, job, folder)):
        recorded = recorded_step(folder / f"linked/linked.{rank}.json", tensor_ranks(job))
        counted = counted_operations(etude, folder / f"counted/chakra.{rank}.et")
        add_sharing_terms(generated, job, rank)
        known, terms = quantities(recorded), generated.terms
        without = quantities(generated)
        rows = [
            Row(name, known.get(name, 0), without.get(name, 0) + sum(terms.get(name, {}).values()), terms.get(name, {}))
            for name in {**known, **without}
        ]
        operations = [count for count, _ in recorded.forward + recorded.backward]
        operations += recorded.attention_forward + recorded.attention_backward
        same = {"operations as counted by etude convert": sorted(operations) == counted}
        for name in ("forward", "backward", "attention_forward", "attention_backward"):
            same[name.replace("_", " ")] = sorted(getattr(recorded, name)) == sorted(getattr(generated, name))
        same["order of passes"] = recorded.passes == generated.passes
        if recorded.messages:
            # With several chunks on a stage, receives begin a step ahead, among other sends.
            same["order of sends and of receives"] = recorded.messages == generated.messages
        else:
            same["order of communication"] = recorded.communication == generated.communication
        comparisons.append(Comparison(rows, same))
    return comparisons
