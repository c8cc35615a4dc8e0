#!/usr/bin/env python3
"""Trains a model of chosen sizes on one thread, for bench/whatif: `sized_programs.py gpt|mlp --layers N --batch N …`."""

import argparse

import torch

from recording import STEPS


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norms[1](x))))


class Gpt(torch.nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.embedding = torch.nn.Embedding(1000, width)
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, 1000)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


def mlp(layers, width):
    hidden = [part for _ in range(layers) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(torch.nn.Linear(64, width), *hidden, torch.nn.Linear(width, 10))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=["gpt", "mlp"])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if args.model == "gpt":
        model = Gpt(args.layers, args.width)
        inputs, labels = torch.randint(1000, (args.batch, args.length)), torch.randint(1000, (args.batch * args.length,))
    else:
        model = mlp(args.layers, args.width)
        inputs, labels = torch.randn(args.batch, 64), torch.randint(10, (args.batch,))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(args.steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
