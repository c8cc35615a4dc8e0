"""Trains a transformer with rotary embeddings and heads that share keys, with checkpoints or autocast if wanted.

    python rotary_program.py [NAME=NUMBER…]
"""

import sys

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.set_num_threads(1)
sizes = {"batch": 4, "length": 32, "width": 64, "heads": 4, "keys": 2, "ffn": 176, "words": 100, "autocast": 0, "checkpoint": 0}
sizes |= {name: int(number) for name, number in (word.split("=") for word in sys.argv[1:])}
SEQUENCES, LENGTH, WIDTH, HEADS, KEYS, FFN, WORDS, AUTOCAST, CHECKPOINT = sizes.values()
DEPTH = WIDTH // HEADS


def linear(inputs, outputs):
    return torch.nn.Linear(inputs, outputs, bias=False)


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(Norm() for _ in range(2))
        self.q, self.k, self.v, self.out = (linear(WIDTH, size) for size in (WIDTH, KEYS * DEPTH, KEYS * DEPTH, WIDTH))
        self.gate, self.up, self.down = linear(WIDTH, FFN), linear(WIDTH, FFN), linear(FFN, WIDTH)

    def forward(self, x, cos, sin):
        y = self.norms[0](x)
        q, k, v = (part(y).unflatten(-1, (-1, DEPTH)).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if KEYS != HEADS:
            k, v = (x[:, :, None].expand(-1, -1, HEADS // KEYS, -1, -1).flatten(1, 2) for x in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = Norm(), linear(WIDTH, WORDS)
        self.register_buffer("frequencies", 10000 ** (-torch.arange(0, DEPTH, 2) / DEPTH))

    def forward(self, tokens):
        angles = torch.arange(tokens.shape[1])[:, None] * self.frequencies[None]
        angles = torch.cat((angles, angles), -1)
        x, cos, sin = self.embedding(tokens), angles.cos(), angles.sin()
        for block in self.blocks:
            x = checkpoint(block, x, cos, sin, use_reentrant=False) if CHECKPOINT else block(x, cos, sin)
        return self.head(self.norm(x))


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
tokens = torch.randint(WORDS, (SEQUENCES, LENGTH))
for _ in range(6):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=bool(AUTOCAST)):
        logits = model(tokens)
    F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten()).backward()
    optimizer.step()
