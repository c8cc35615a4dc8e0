"""Trains a transformer, alone or on several ranks that divide its weights by torch.distributed.tensor.parallel.

    python tensor_program.py [NAME=NUMBER…]

With plain=1, the ranks' parts are plain tensors with all-reduces, as in Megatron-LM. With sharded=1, ranks divide the
batch, and the weights of each block by torch.distributed.fsdp.fully_shard.
"""

import os
import sys

import torch
import torch.nn.functional as F
from rank_end import end_rank

torch.manual_seed(0)
torch.set_num_threads(1)
sizes = {"layers": 2, "batch": 4, "length": 32, "width": 64, "heads": 4, "ffn": 256, "words": 100, "steps": 12, "plain": 0, "sharded": 0}
sizes |= {name: int(number) for name, number in (word.split("=") for word in sys.argv[1:])}
LAYERS, SEQUENCES, LENGTH, WIDTH, HEADS, FFN, WORDS, STEPS, PLAIN, SHARDED = sizes.values()


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        heads = (part(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(2))
        self.attention = Attention()
        self.up, self.down = torch.nn.Linear(WIDTH, FFN), torch.nn.Linear(FFN, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Enter(torch.autograd.Function):
    """Begins operators on parts: their gradients are added over all ranks."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        torch.distributed.all_reduce(gradient)
        return gradient


class Leave(torch.autograd.Function):
    """Ends operators on parts: their results are added over all ranks."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        torch.distributed.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Rows(torch.nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.weight, self.bias = part_of(whole.weight, 1), whole.bias

    def forward(self, x):
        return Leave.apply(F.linear(x, self.weight)) + self.bias


def part_of(parameter, dim):
    ranks = torch.distributed.get_world_size()
    part = parameter.detach().chunk(ranks, dim)[torch.distributed.get_rank()]
    return torch.nn.Parameter(part.clone())


def divide(block):
    attention = block.attention
    for whole in (attention.q, attention.k, attention.v, block.up):
        whole.weight, whole.bias = part_of(whole.weight, 0), part_of(whole.bias, 0)
    for module in (attention, block.up):
        module.register_forward_pre_hook(lambda _, inputs: (Enter.apply(inputs[0]),))
    attention.out, block.down = Rows(attention.out), Rows(block.down)


if "RANK" in os.environ and "light_torch" in sys.modules:
    sys.modules["light_torch"].load()  # DTensor needs all of torch

model = Model()
if "RANK" in os.environ and PLAIN:
    torch.distributed.init_process_group("gloo")
    for block in model.blocks:
        divide(block)
elif "RANK" in os.environ and SHARDED:
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo")
    mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for module in (*model.blocks, model):
        fully_shard(module, mesh=mesh)
elif "RANK" in os.environ:
    import torch.distributed.tensor.parallel as parallel
    from torch.distributed.tensor import Replicate

    torch.distributed.init_process_group("gloo")
    mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    columns, rows = parallel.ColwiseParallel, parallel.RowwiseParallel
    for block in model.blocks:
        whole = parallel.PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Replicate(),))
        plan = {"attention": whole} | {f"attention.{name}": columns() for name in "qkv"}
        plan |= {"attention.out": rows(), "up": columns(), "down": rows()}
        parallel.parallelize_module(block, mesh, plan)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
tokens, targets = torch.randint(WORDS, (2, SEQUENCES, LENGTH))
for _ in range(STEPS):
    optimizer.zero_grad()
    F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).backward()
    optimizer.step()
end_rank()
