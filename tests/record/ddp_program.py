"""Trains an MLP for some steps, alone or data-parallel over Gloo under torchrun."""

import os
import sys

import torch
import torch.distributed as dist
from rank_end import end_rank

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Linear(256, 900), torch.nn.ReLU(), torch.nn.LayerNorm(900), torch.nn.Linear(900, 900), torch.nn.ReLU(),
    torch.nn.Linear(900, 10),
)  # fmt: skip
trained = model
if "RANK" in os.environ:
    dist.init_process_group("gloo")
    trained = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=float(sys.argv[1]) if sys.argv[1:] else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    x, y = torch.randn(16, 256), torch.randint(10, (16,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(trained(x), y).backward()
    optimizer.step()
end_rank()
