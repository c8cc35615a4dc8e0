"""Trains an MLP data-parallel over Gloo under torchrun, and reduces each gradient after the backward pass."""

import torch
import torch.distributed as dist
from rank_end import end_rank

torch.manual_seed(0)
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.Sequential(torch.nn.Linear(256, 900), torch.nn.ReLU(), torch.nn.Linear(900, 900), torch.nn.Linear(900, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    x, y = torch.randn(256, 256), torch.randint(10, (256,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
end_rank()
