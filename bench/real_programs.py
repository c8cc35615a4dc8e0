"""Steps of a small GPT, recorded on two Gloo ranks: alone, data parallel, sharded, as a pipeline and tensor
parallel.

    python bench/real_programs.py FOLDER JOB...

Each job leaves a capture folder FOLDER/JOB. torch is imported once, because the second rank is a fork of the first.
"""

import argparse
import os
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F
from torch import nn
from real_jobs import JOBS, RANKS
from torch.distributed.device_mesh import init_device_mesh

WARMUP = 2  # DistributedDataParallel reorders its buckets after the first step


class Block(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.size = shapes.hidden // shapes.heads
        self.fused = shapes.fused
        self.attention_norm = nn.LayerNorm(shapes.hidden)
        self.qkv = nn.Linear(shapes.hidden, 3 * shapes.hidden)
        self.projection = nn.Linear(shapes.hidden, shapes.hidden)
        self.ffn_norm = nn.LayerNorm(shapes.hidden)
        self.up = nn.Linear(shapes.hidden, shapes.ffn)
        self.down = nn.Linear(shapes.ffn, shapes.hidden)

    def attend(self, query, key, value):
        if self.fused:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = query @ key.transpose(-2, -1) * self.size**-0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(future, float("-inf")).softmax(-1) @ value

    def forward(self, x):
        heads = self.qkv(self.attention_norm(x)).unflatten(-1, (3, -1, self.size))
        attended = self.attend(*heads.permute(2, 0, 3, 1, 4))
        x = x + self.projection(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.ffn_norm(x)), approximate="tanh"))


class Embedding(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.words = nn.Embedding(shapes.vocabulary, shapes.hidden)
        self.positions = nn.Parameter(torch.zeros(shapes.sequence, shapes.hidden))

    def forward(self, tokens):
        return self.words(tokens) + self.positions


class Head(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.norm = nn.LayerNorm(shapes.hidden)
        self.words = nn.Linear(shapes.hidden, shapes.vocabulary, bias=False)

    def forward(self, x):
        return self.words(self.norm(x))


class Gpt(nn.Module):
    """A pipeline stage of the model: the layers from `first` to before `last`, with embedding and head on the ends."""

    def __init__(self, shapes, first=0, last=None):
        super().__init__()
        last = shapes.layers if last is None else last
        self.embedding = Embedding(shapes) if first == 0 else None
        self.layers = nn.ModuleList(Block(shapes) for _ in range(first, last))
        self.head = Head(shapes) if last == shapes.layers else None
        if shapes.tied:
            self.head.words.weight = self.embedding.words.weight

    def forward(self, x):
        if self.embedding is not None:
            x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return x if self.head is None else self.head(x)


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def batch(shapes, micro_batches=1):
    size = (micro_batches * shapes.sequences, shapes.sequence)
    return torch.randint(shapes.vocabulary, size), torch.randint(shapes.vocabulary, size)


def adam(model):
    kinds = {}  # tensors of one kind are updated together
    for parameter in model.parameters():
        kinds.setdefault(type(parameter.data), []).append(parameter)
    return torch.optim.Adam([{"params": group} for group in kinds.values()], fused=True)


def plain_step(model, shapes, micro_batches=1, loss=loss_of):
    optimizer = adam(model)
    tokens, targets = batch(shapes, micro_batches)

    def step():
        optimizer.zero_grad()
        for x, y in zip(tokens.chunk(micro_batches), targets.chunk(micro_batches)):
            loss(model(x), y).backward()
        optimizer.step()

    return step


# ---- jobs: each gives a function that runs a step


def alone(shapes, micro_batches=1):
    return plain_step(Gpt(shapes), shapes, micro_batches)


def data_parallel(shapes, bucket_bytes=None):
    cap = None if bucket_bytes is None else bucket_bytes / 2**20
    return plain_step(nn.parallel.DistributedDataParallel(Gpt(shapes), bucket_cap_mb=cap), shapes)


def sharded(shapes, ends=False, micro_batches=1):
    """Makes each layer a unit. The ends are one unit each, or belong with the rest to the root, whose weights stay
    gathered."""
    from torch.distributed.fsdp import fully_shard

    model = Gpt(shapes)
    mesh = init_device_mesh("cpu", (RANKS,))
    for layer in (model.embedding, *model.layers, model.head) if ends else model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return plain_step(model, shapes, micro_batches)


def pipeline(shapes, schedule, micro_batches, chunks):
    from torch.distributed.pipelining import PipelineStage, schedules

    rank, places = dist.get_rank(), RANKS * chunks
    # If the layers do not divide evenly, the first places have one more.
    firsts = [i * (shapes.layers // places) + min(i, shapes.layers % places) for i in range(places + 1)]
    model = nn.ModuleList(
        Gpt(shapes, *firsts[place : place + 2]) for place in range(rank, places, RANKS)
    )
    stages = [
        PipelineStage(part, i * RANKS + rank, places, torch.device("cpu")) for i, part in enumerate(model)
    ]
    runner = getattr(schedules, schedule)(
        stages if chunks > 1 else stages[0], micro_batches, loss_fn=loss_of
    )
    tokens, targets = batch(shapes, micro_batches)
    optimizer = adam(model)

    def step():
        optimizer.zero_grad()
        if rank == 0:
            runner.step(tokens, return_outputs=False)
        else:
            runner.step(target=targets, return_outputs=False)
        optimizer.step()

    return step


def tensor_parallel(shapes, sequence=False):
    """`sequence`: norms and residuals are divided by tokens."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        loss_parallel,
        parallelize_module,
    )

    model = Gpt(shapes)
    mesh = init_device_mesh("cpu", (RANKS,))
    between = Shard(1) if sequence else Replicate()
    plan = {
        "embedding.words": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
        "head.words": ColwiseParallel(input_layouts=between, output_layouts=Shard(-1), use_local_output=False),
    }
    for i in range(shapes.layers):
        for name in ("qkv", "up"):
            plan[f"layers.{i}.{name}"] = ColwiseParallel(input_layouts=between)
        for name in ("projection", "down"):
            plan[f"layers.{i}.{name}"] = RowwiseParallel(output_layouts=between)
        if sequence:
            plan |= {f"layers.{i}.{name}_norm": SequenceParallel() for name in ("attention", "ffn")}
    if sequence:
        plan["head.norm"] = SequenceParallel()
        # Each rank has the positions of its tokens.
        share = model.embedding.positions.chunk(RANKS)[dist.get_rank()]
        model.embedding.positions = nn.Parameter(share.detach().clone())
    parallelize_module(model, mesh, plan)
    step = plain_step(model, shapes)

    def parallel_step():
        with loss_parallel():
            step()

    return parallel_step


def record_jobs(rank, folder, names):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    import etude

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS
    )
    for name in names:
        torch.manual_seed(rank)
        job = JOBS[name]
        step = globals()[job.program](job.shapes, **job.arguments)
        with etude.record(
            folder / name, recorder="native", warmup=WARMUP, steps=1, modules=False, strict=True
        ) as recording:
            while not recording.done:
                step()
                recording.step()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # work that torch leaves for the end of a process may wait for the other rank


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("jobs", nargs="*", default=list(JOBS), metavar="JOB")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    torch.multiprocessing.start_processes(
        record_jobs, (args.folder.resolve(), args.jobs), nprocs=RANKS, start_method="fork"
    )


if __name__ == "__main__":
    main()
