"""Six small training workloads for the CPU: `make(name)` returns a function that runs one step.

As a program it trains NAME for some steps. Under torchrun the model is wrapped in DistributedDataParallel.
"""

import argparse
import functools
import importlib.util
import os

import torch
import torch.nn.functional as F
from torch import nn

NAMES = ["mlp", "resnet18", "dlrm", "transformer", "lstm"]


class BasicBlock(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False),
                nn.BatchNorm2d(channels_out),
            )

    def forward(self, x):
        y = torch.relu_(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return torch.relu_(y + (x if self.shortcut is None else self.shortcut(x)))


def resnet18(classes=1000):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage in range(4):
        width = 64 << stage
        layers += [BasicBlock(channels, width, 1 if stage == 0 else 2), BasicBlock(width, width, 1)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Recommender(nn.Module):
    """Embedding bags and a dense network, joined by dot products (the DLRM scheme)."""

    def __init__(self, tables=8, rows=200_000, width=64, dense=13):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = mlp(dense, 512, 256, width)
        pairs = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("first", pairs[0])
        self.register_buffer("second", pairs[1])
        self.top = mlp(width + pairs.shape[1], 512, 256, 1)

    def forward(self, dense, indices, offsets):
        bottom = self.bottom(dense)
        parts = [bottom] + [t(i, o) for t, i, o in zip(self.tables, indices, offsets)]
        stacked = torch.stack(parts, dim=1)
        dots = torch.bmm(stacked, stacked.transpose(1, 2))[:, self.first, self.second]
        return self.top(torch.cat([bottom, dots], dim=1))


class Encoder(nn.Module):
    def __init__(self, words=8000, width=256, layers=4, heads=8, length=128):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.body(self.words(tokens) + self.places))


class LanguageModel(nn.Module):
    def __init__(self, words=5000, width=256):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.body = nn.LSTM(width, width, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.body(self.words(tokens))[0])


def mlp(*widths):
    layers = []
    for width_in, width_out in zip(widths, widths[1:]):
        layers += [nn.Linear(width_in, width_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def zipf_like(rows, count, generator):
    """Returns indices of which few are frequent, as in real categories."""
    return (torch.rand(count, generator=generator).pow(4) * rows).long().clamp_(max=rows - 1)


def training_step(optimizer, loss):
    """Returns a function that runs one training step and returns its loss."""

    def step():
        optimizer.zero_grad()
        result = loss()
        result.backward()
        optimizer.step()
        return result

    return step


def make(name, wrap=None, seed=0):
    """Returns (a function that runs one training step, the model)."""
    torch.manual_seed(seed)
    wrap = wrap or (lambda model: model)
    if name == "mlp":
        model = wrap(mlp(1024, 2048, 2048, 2048, 512))
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        x, y = torch.randn(256, 1024), torch.randn(256, 512)
        loss = lambda: F.mse_loss(model(x), y)
    elif name == "resnet18":
        model = wrap(resnet18())
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
        x, y = torch.randn(8, 3, 128, 128), torch.randint(0, 1000, (8,))
        loss = lambda: F.cross_entropy(model(x), y)
    elif name == "dlrm":
        batch, bag, rows = 1024, 20, 200_000
        model = wrap(Recommender(rows=rows))
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        generator = torch.Generator().manual_seed(1)
        x, y = torch.randn(batch, 13), torch.rand(batch, 1)
        indices = [zipf_like(rows, batch * bag, generator) for _ in range(8)]
        offsets = [torch.arange(0, batch * bag, bag) for _ in range(8)]
        loss = lambda: F.binary_cross_entropy_with_logits(model(x, indices, offsets), y)
    elif name == "transformer":
        model = wrap(Encoder())
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        x = torch.randint(0, 8000, (8, 128))
        loss = lambda: F.cross_entropy(model(x).flatten(0, 1), x.flatten())
    elif name == "lstm":
        model = wrap(LanguageModel())
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        x = torch.randint(0, 5000, (16, 32))
        loss = lambda: F.cross_entropy(model(x).flatten(0, 1), x.flatten())
    else:
        raise SystemExit(f"unknown workload {name!r}, expected one of {', '.join(NAMES)}")

    return training_step(optimizer, loss), model


def load_make(path):
    """Returns `make` of another file of workloads."""
    if not path:
        return make
    spec = importlib.util.spec_from_file_location("other_workloads", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--models", help="a file with another make(name, wrap=None)")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bucket", type=float, help="size of gradient buckets in MiB; PyTorch's own unless said")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    wrap = None
    if "RANK" in os.environ:
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group("gloo")
        wrap = functools.partial(DistributedDataParallel, bucket_cap_mb=args.bucket)
    step, _ = load_make(args.models)(args.name, wrap=wrap)
    for _ in range(args.steps):
        step()


if __name__ == "__main__":
    main()
