"""Trains a transformer of as many layers as the first argument says, on one rank, with a batch as the second says.

Further arguments: "foreach" for an optimizer on lists, "kept" to set gradients to zero instead of releasing them.
"""

import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
WIDTH = 32


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.up, self.down = torch.nn.Linear(WIDTH, 64), torch.nn.Linear(64, WIDTH)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding = torch.nn.Embedding(100, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(layers))
        self.head = torch.nn.Linear(WIDTH, 100)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Model(int(sys.argv[1]))
batch = int(sys.argv[2])
optimizer = torch.optim.AdamW(model.parameters(), foreach="foreach" in sys.argv)
for _ in range(12):
    x = torch.randint(100, (batch, 16))
    optimizer.zero_grad(set_to_none="kept" not in sys.argv)
    torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
