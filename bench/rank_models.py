"""Training on two ranks, for bench/ranks: `make(name)` returns a function that runs one step, under torchrun."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NAMES = ["ddp_small_buckets", "ddp_one_bucket", "tensor_parallel", "pipeline"]


def pin():
    """Pins this rank, with all its threads, to its share of the available processors. Gloo's threads exist already."""
    mine = sorted(os.sched_getaffinity(0))
    rank, size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    share = len(mine) // size
    if share:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), mine[rank * share : (rank + 1) * share])


def mlp(*widths):
    layers = []
    for width_in, width_out in zip(widths, widths[1:]):
        layers += [nn.Linear(width_in, width_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def data_parallel(bucket_mb):
    model = DistributedDataParallel(mlp(1024, 2048, 2048, 2048, 512), bucket_cap_mb=bucket_mb)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = torch.randn(128, 1024), torch.randn(128, 512)

    def step():
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


class ToAll(torch.autograd.Function):
    """Returns the same value on all ranks. Their gradients are summed."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class FromAll(torch.autograd.Function):
    """Returns the sum over all ranks. Each rank gets its gradient."""

    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class ParallelBlock(nn.Module):
    """Two layers, the first split by columns and the second by rows (Megatron-LM, 2019)."""

    def __init__(self, width, inner, size):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, inner // size)
        self.down = nn.Linear(inner // size, width, bias=False)

    def forward(self, x):
        return x + FromAll.apply(self.down(F.gelu(self.up(ToAll.apply(self.norm(x))))))


def tensor_parallel():
    width = 1024
    model = nn.Sequential(*(ParallelBlock(width, 4 * width, dist.get_world_size()) for _ in range(4)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = torch.randn(128, width), torch.randn(128, width)

    def step():
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def pipeline(chunks=4):
    """GPipe's schedule: all chunks forward, then all backward."""
    width, rows = 1024, 64
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    model = mlp(*[width] * 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    inputs, targets = torch.randn(chunks, rows, width), torch.randn(chunks, rows, width)

    def step():
        optimizer.zero_grad()
        held = []
        for chunk in range(chunks):
            x = inputs[chunk]
            if rank > 0:
                x = torch.empty(rows, width)
                dist.recv(x, rank - 1)
                x.requires_grad_()
            y = model(x)
            if rank < last:
                dist.send(y.detach(), rank + 1)
            else:
                y = F.mse_loss(y, targets[chunk])
            held.append((x, y))
        for x, y in reversed(held):
            if rank < last:
                gradient = torch.empty(rows, width)
                dist.recv(gradient, rank + 1)
                y.backward(gradient)
            else:
                y.backward()
            if rank > 0:
                dist.send(x.grad, rank - 1)
        optimizer.step()

    return step


def make(name, wrap=None, seed=0):
    """Returns (a function that runs one training step, None). `wrap` is not used, because each job handles its
    ranks."""
    pin()
    torch.manual_seed(seed)
    if name == "ddp_small_buckets":
        return data_parallel(1), None
    if name == "ddp_one_bucket":
        return data_parallel(1000), None
    if name == "tensor_parallel":
        return tensor_parallel(), None
    if name == "pipeline":
        return pipeline(), None
    raise SystemExit(f"unknown job {name!r}, expected one of {', '.join(NAMES)}")
