"""Face embedding with the same steps as src/suite/tasks/face_embedding.cc."""

import pathlib

import torch
import torch.nn.functional as F
from torch import nn

from twin_parts import idx, update

SIDE = 32
OF_EACH = 4
MARGIN = 0.2


def faces(data):
    """Returns training pictures and people: three of four."""
    folder = pathlib.Path(data) / "orl-faces"
    images = idx(folder / "images-idx3-ubyte").float().div(255).unsqueeze(1)
    images = F.interpolate(images, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
    people = idx(folder / "labels-idx1-ubyte").long()
    learned = people % 4 != 3
    return images[learned], people[learned]


class FaceNet(nn.Module):
    def __init__(self, width=16, embedding=64):
        super().__init__()
        channels = [1, width, 2 * width, 4 * width, 4 * width]
        self.conv = nn.ModuleList(nn.Conv2d(*pair, 3, 1, 1, bias=False) for pair in zip(channels, channels[1:]))
        self.bn = nn.ModuleList(nn.BatchNorm2d(count) for count in channels[1:])
        self.fc = nn.Linear(channels[-1] * (SIDE // 8) ** 2, embedding)

    def forward(self, x):
        x = (x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-6)
        for number, (conv, bn) in enumerate(zip(self.conv, self.bn)):
            x = F.relu(bn(conv(x)))
            if number + 1 < len(self.conv):
                x = F.max_pool2d(x, 2)
        return F.normalize(self.fc(x.flatten(1)), dim=1)


def moved(x):
    count = len(x)
    mirror = (torch.empty(count).uniform_() < 0.5).float() * -2 + 1
    angle = torch.empty(count).uniform_(-0.15, 0.15)
    scale = torch.empty(count).uniform_(0.9, 1.1)
    shift = torch.empty(count, 2).uniform_(-0.1, 0.1)
    cosine, sine = angle.cos() * scale, angle.sin() * scale
    maps = torch.stack([torch.stack([mirror * cosine, -sine, shift[:, 0]], 1), torch.stack([mirror * sine, cosine, shift[:, 1]], 1)], 1)
    return F.grid_sample(x, F.affine_grid(maps, x.shape, align_corners=False), padding_mode="border", align_corners=False)


def triplet_loss(embeddings, people):
    same = people.unsqueeze(1) == people.unsqueeze(0)
    anchor, other = (same & ~torch.eye(len(people), dtype=torch.bool)).nonzero(as_tuple=True)
    is_other = ~same[anchor]
    distances = 2 - 2 * embeddings @ embeddings.T
    positive, negatives = distances[anchor, other], distances[anchor]
    is_farther = (negatives > positive.unsqueeze(1)) & is_other
    nearest = negatives.masked_fill(~is_farther, 4).amin(1)
    farthest = negatives.masked_fill(~is_other, -1).amax(1)
    negative = torch.where(is_farther.any(1), nearest, farthest)
    return F.relu(positive - negative + MARGIN).mean()


def make(data):
    images, people = faces(data)
    others = [[j for j in (people == person).nonzero().squeeze(1).tolist() if j != i] for i, person in enumerate(people.tolist())]
    model = FaceNet()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)

    def step(index):
        draws = torch.empty(len(index), OF_EACH - 1).uniform_().tolist()
        chosen = []
        for sample, row in zip(index.tolist(), draws):
            own = list(others[sample])
            for i, draw in enumerate(row):
                place = i + int(draw * (len(own) - i))
                own[i], own[place] = own[place], own[i]
            chosen += [sample, *own[:OF_EACH - 1]]
        loss = triplet_loss(model(moved(images[chosen])), people[chosen])
        return update(optimizer, loss)

    return step, 16, len(people)
