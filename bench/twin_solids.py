"""3D object reconstruction as src/suite/tasks/object_reconstruction.cc has it, step for step. Pictures and volumes are noise: steps take as
long."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from twin_parts import update, warmed_cosine

SOLIDS, PICTURES, SIDE, VOXELS = 1200, 6, 32, 16
VIEWS, VIEWS_A_STEP, ELEVATION, NEAREST, FARTHEST, ZOOM = 24, 2, 30, 2, 4, 2.75
FILTERS, HIDDEN, CODE, CHANNELS, KERNEL = 16, 128, 64, (48, 24, 1), 4
BATCH, STEPS, RATE, WEIGHT = 16, 600, 2e-3, 10


def rays():
    """The places in a volume [y, x, z] that pixels show: [views, distance, row, column, 3], the last dimension first."""
    line = torch.linspace(-1, 1, VOXELS)
    distance = torch.linspace(NEAREST, FARTHEST, VOXELS).view(-1, 1, 1, 1)
    height = math.radians(ELEVATION)
    views = []
    for view in range(VIEWS):
        azimuth = 2 * math.pi * view / VIEWS
        across, along, level, above = math.cos(azimuth), math.sin(azimuth), math.cos(height), math.sin(height)
        forward = torch.tensor([across * level, -above, -along * level])
        up = torch.tensor([across * above, level, -along * above])
        right = torch.tensor([along, 0.0, across])
        ray = forward + (line.view(1, -1, 1) * right - line.view(-1, 1, 1) * up) / ZOOM
        views.append((distance * ray - (NEAREST + FARTHEST) / 2 * forward)[..., [2, 0, 1]])
    return torch.stack(views)


def projections(volumes, rays_of_each):
    seen = F.grid_sample(volumes, rays_of_each.flatten(1, 2), align_corners=False)
    return seen.squeeze(1).unflatten(1, rays_of_each.shape[1:3]).amax(2)


class Ptn(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (1, FILTERS, 2 * FILTERS, 4 * FILTERS)
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 5, 2, 2) for a, b in zip(widths, widths[1:]))
        sizes = (4 * FILTERS * (SIDE // 8) ** 2, HIDDEN, HIDDEN, CODE, CHANNELS[0] * 64)
        self.linear = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.growing = nn.ModuleList(nn.ConvTranspose3d(a, b, KERNEL, 2, 1) for a, b in zip(CHANNELS, CHANNELS[1:]))
        for layer in [*self.convolutions, *self.linear]:
            nn.init.normal_(layer.weight, 0, math.sqrt(2 / layer.weight[0].numel()))
            nn.init.zeros_(layer.bias)
        for layer in self.growing:
            nn.init.normal_(layer.weight, 0, math.sqrt(2 / (layer.in_channels * KERNEL**3 / 8)))
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.growing[-1].weight, 0, 0.02)
        nn.init.constant_(self.growing[-1].bias, -2)

    def forward(self, x):
        x = x * 2 - 1
        for layer in self.convolutions:
            x = F.relu(layer(x))
        x = x.flatten(1)
        for layer in self.linear:
            x = F.relu(layer(x))
        x = x.view(-1, CHANNELS[0], 4, 4, 4)
        for layer in self.growing[:-1]:
            x = F.relu(layer(x))
        return torch.sigmoid(self.growing[-1](x))


def make(_data):
    """No data set is read."""
    pictures = torch.rand(SOLIDS * PICTURES, SIDE, SIDE)
    volumes = torch.rand(SOLIDS, VOXELS, VOXELS, VOXELS).round()
    of_views = rays()
    model = Ptn()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = warmed_cosine(optimizer, 0, STEPS)

    def step(index):
        count = len(index)
        picture = torch.empty(count).uniform_(0, PICTURES).long().clamp_max(PICTURES - 1)
        shown = pictures.index_select(0, index * PICTURES + picture).unsqueeze(1)
        volume = volumes.index_select(0, index).unsqueeze(1)
        views = torch.empty(count, VIEWS).uniform_().topk(VIEWS_A_STEP).indices
        chosen = of_views.index_select(0, views.flatten()).unflatten(0, (count, VIEWS_A_STEP))
        with torch.no_grad():
            silhouettes = projections(volume, chosen)
        difference = projections(model(shown), chosen) - silhouettes
        loss = difference.square().sum() * (WEIGHT / 2 / (VIEWS_A_STEP * count))
        found = update(optimizer, loss)
        schedule.step()
        return found

    return step, BATCH, SOLIDS
