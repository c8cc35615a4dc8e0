"""Trains an MLP on two ranks over Gloo; rank 1 multiplies larger matrices than rank 0 by the factor of the first argument."""

import sys

import torch
import torch.distributed as dist
from rank_end import end_rank

torch.manual_seed(0)
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
more = torch.randn(256, 64 * (int(sys.argv[1]) if dist.get_rank() == 1 else 1))
for _ in range(12):
    x, y = torch.randn(64, 64), torch.randint(10, (64,))
    optimizer.zero_grad()
    torch.matmul(x, more[:64]).sum()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
end_rank()
