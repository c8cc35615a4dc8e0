"""Trains a small residual network on real images: the handwritten digits that scikit-learn ships.

Plain PyTorch. Runs on its own (`python examples/train_resnet.py`) and, unchanged, under
`etude record`.
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False),
                nn.BatchNorm2d(channels_out),
            )

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return F.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, width=32, classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        stages = [(width, 1), (2 * width, 2), (4 * width, 2)]
        blocks, channels = [], width
        for channels_out, stride in stages:
            blocks += [
                ResidualBlock(channels, channels_out, stride),
                ResidualBlock(channels_out, channels_out, 1),
            ]
            channels = channels_out
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.body(self.stem(x))
        return self.head(x.mean(dim=(2, 3)))


def load_images(size):
    """Returns training and test images (N, 1, size, size) in 0..1 and their labels (N,)."""
    digits = load_digits()
    images = torch.from_numpy(digits.images.astype(np.float32) / 16).unsqueeze(1)
    images = F.interpolate(images, size=size, mode="bilinear")
    labels = torch.from_numpy(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    split = len(images) * 4 // 5
    train, test = order[:split], order[split:]
    return images[train], labels[train], images[test], labels[test]


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        hits = sum(
            (model(x).argmax(1) == y).sum().item()
            for x, y in zip(images.split(256), labels.split(256))
        )
    model.train()
    return hits / len(labels)


def main():
    parser = argparse.ArgumentParser(description="Train a residual network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=32, help="edge of the images, pixels")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    images, labels, test_images, test_labels = load_images(args.size)
    model = ResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    for epoch in range(args.epochs):
        order = torch.randperm(len(images))
        total, steps = 0.0, 0
        for batch in order.split(args.batch):
            if len(batch) < args.batch:
                continue
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        hits = accuracy(model, test_images, test_labels)
        print(f"epoch {epoch}: loss {total / steps:.3f}, test accuracy {hits:.3f}")


if __name__ == "__main__":
    main()
