"""Parts of several twins."""

import math
import struct

import torch
import torch.nn.functional as F
from torch import nn


def idx(path):
    """Returns the bytes of a file in MNIST's IDX format as a uint8 tensor of its shape."""
    raw = path.read_bytes()
    sizes = struct.unpack(f">{raw[3]}I", raw[4:4 + 4 * raw[3]])
    return torch.frombuffer(bytearray(raw[4 + 4 * raw[3]:]), dtype=torch.uint8).view(sizes)


def update(optimizer, loss):
    """Updates the parameters by the gradients of `loss`, and returns its value."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


class Block(nn.Module):
    """ResNet's basic block (He et al., 1512.03385)."""

    def __init__(self, channels_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.fit = None
        if channels_in != width or stride != 1:
            self.fit = nn.Sequential(nn.Conv2d(channels_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.fit is None else self.fit(x)
        return F.relu(y, inplace=True)


def warmed_cosine(optimizer, warmup, steps):
    """Returns the schedule of tasks with a linear warm-up and then half a cosine to 0 at the last step."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / warmup if step < warmup else (
        1 + math.cos(math.pi * min(1, (step - warmup) / (steps - warmup)))) / 2)
