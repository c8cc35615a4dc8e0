"""Trains a transformer with micro-batches of four sequences, alone or on several ranks as a pipeline.

    python pipeline_program.py SCHEDULE MICRO_BATCHES [WIDTH] [STEPS]
"""

import os
import sys

import torch
import torch.nn.functional as F
from rank_end import end_rank

torch.set_num_threads(1)
LAYERS, LENGTH, WORDS, SEQUENCES = 4, 32, 100, 4
schedule, micro_batches = sys.argv[1], int(sys.argv[2])
WIDTH, STEPS = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((3, 64), (4, 12)))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.qkv, self.projection = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = self.qkv(self.norm(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        scores = (heads[0] @ heads[1].transpose(-2, -1)).masked_fill(future, float("-inf"))
        x = x + self.projection((scores.softmax(-1) @ heads[2]).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


class Part(torch.nn.Module):
    """The layers from `first` to before `last`, with embedding and head on the ends."""

    def __init__(self, first, last):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH) if first == 0 else None
        self.blocks = torch.nn.ModuleList(Block() for _ in range(first, last))
        self.head = torch.nn.Linear(WIDTH, WORDS) if last == LAYERS else None

    def forward(self, x):
        if self.embedding is not None:
            x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(x)


def loss_of(words, targets):
    return F.cross_entropy(words.flatten(0, 1), targets.flatten())


if "RANK" in os.environ:
    import torch.distributed.pipelining as pipelining

    torch.distributed.init_process_group("gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(rank)
    model = Part(rank * LAYERS // ranks, (rank + 1) * LAYERS // ranks)
    stage = pipelining.PipelineStage(model, rank, ranks, torch.device("cpu"))
    runner = getattr(pipelining, schedule)(stage, micro_batches, loss_fn=loss_of, scale_grads=False)
else:
    rank, ranks = 0, 1
    model = Part(0, LAYERS)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
tokens, targets = torch.randint(WORDS, (2, SEQUENCES * micro_batches, LENGTH))
for _ in range(STEPS):
    optimizer.zero_grad()
    if ranks == 1:
        loss_of(model(tokens), targets).backward()
    else:
        runner.step(*((tokens,) if rank == 0 else ()), **({"target": targets} if rank == ranks - 1 else {}))
    optimizer.step()
end_rank()
