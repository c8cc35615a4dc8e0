"""Image compression as src/suite/tasks/image_compression.cc has it, step for step."""

import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

from twin_parts import idx, update

CROP, ITERATIONS, BITS = 32, 2, 32
ENCODER, DECODER, CELL, SHORTCUT = (8, 16, 32, 32), (32, 32, 16, 16), 16, 0.72
BATCH, STEPS, RATE = 16, 1000, 5e-3


def convolution(inner, out, kernel, stride=1, gain=1):
    layer = nn.Conv2d(inner, out, kernel, stride, kernel // 2, bias=False)
    nn.init.normal_(layer.weight, 0, gain / math.sqrt(layer.weight[0].numel()))
    return layer


class ConvLstm(nn.Module):
    def __init__(self, inner, hidden, stride, kernel):
        super().__init__()
        self.of_input = convolution(inner, 4 * hidden, 3, stride)
        self.of_hidden = convolution(hidden, 4 * hidden, kernel)
        self.of_input.weight.data[2 * hidden:3 * hidden] *= 4

    def start_smooth(self):
        """Makes the pixels that four channels become equal."""
        for layer in (self.of_input, self.of_hidden):
            layer.weight.data = layer.weight.data[::4].repeat_interleave(4, 0)

    def forward(self, x, before):
        sums = self.of_input(x)
        if before is not None:
            sums = sums + self.of_hidden(before[0])
        entry, forget, candidate, exit = sums.chunk(4, 1)
        cell = torch.sigmoid(entry) * torch.tanh(candidate)
        if before is not None:
            cell = cell + torch.sigmoid(forget) * before[1]
        return torch.sigmoid(exit) * torch.tanh(cell), cell


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder_first = convolution(3, ENCODER[0], 3, 2)
        self.encoder = nn.ModuleList(ConvLstm(a, b, 2, 1) for a, b in zip(ENCODER, ENCODER[1:]))
        self.binarizer = convolution(ENCODER[-1], BITS, 1, gain=8)
        self.decoder_first = convolution(BITS, DECODER[0], 1, gain=0.25)
        inner = (DECODER[0], *(width // 4 for width in DECODER))
        self.decoder = nn.ModuleList(ConvLstm(a, b, 1, kernel) for a, b, kernel in zip(inner, DECODER, (1, 1, 3, 3)))
        for layer in self.decoder:
            layer.start_smooth()
        self.decoder_last = convolution(inner[-1], 3, 1, gain=0.5)
        smooth = F.interpolate(torch.randn(BITS, 3, 4, 4), size=CELL, mode="bilinear")
        smooth *= 0.1 / smooth.square().sum((1, 2, 3), keepdim=True).sqrt()
        self.to_signs = nn.Parameter(smooth)
        self.from_signs = nn.Parameter(smooth.flatten(1).t().reshape(-1, BITS, 1, 1).clone())

    def forward(self, pictures):
        encoder, decoder = [None] * len(self.encoder), [None] * len(self.decoder)
        coded, after = torch.full_like(pictures, 0.5), []
        for _ in range(ITERATIONS):
            x = self.encoder_first(pictures - coded)
            for i, layer in enumerate(self.encoder):
                encoder[i] = layer(x, encoder[i])
                x = encoder[i][0]
            shortcut = F.conv2d(pictures - coded, self.to_signs, stride=CELL)
            means = torch.tanh(self.binarizer(x) + SHORTCUT * shortcut)
            drawn = torch.empty_like(means).uniform_(-1, 1) if self.training else torch.zeros_like(means)
            signs = means + ((drawn <= means) * 2.0 - 1 - means).detach()
            x = self.decoder_first(signs)
            for i, layer in enumerate(self.decoder):
                decoder[i] = layer(x, decoder[i])
                x = F.pixel_shuffle(decoder[i][0], 2)
            shortcut = F.pixel_shuffle(F.conv2d(signs, self.from_signs), CELL)
            coded = coded + torch.tanh(self.decoder_last(x) + SHORTCUT * shortcut) / 2
            after.append(coded)
        return after


def make(data):
    folder = pathlib.Path(data) / "photographs" / "train"
    photographs = [idx(path).permute(2, 0, 1).float() / 255 for path in sorted(folder.iterdir())]
    places = [(picture, top, left) for picture in photographs
              for top in range(0, picture.shape[1] - CROP + 1, CROP)
              for left in range(0, picture.shape[2] - CROP + 1, CROP)]  # fmt: skip
    model = Codec()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 + math.cos(math.pi * min(1, step / STEPS))) / 2)

    def crop(number, draw):
        picture, top, left = places[number]
        top = min(top + int(draw[0] * CROP), picture.shape[1] - CROP)
        left = min(left + int(draw[1] * CROP), picture.shape[2] - CROP)
        part = picture[:, top:top + CROP, left:left + CROP]
        return part.flip(2) if draw[2] < 0.5 else part

    def step(index):
        crops = torch.stack([crop(number, draw) for number, draw in zip(index.tolist(), torch.rand(len(index), 3))])
        loss = update(optimizer, sum((crops - coded).abs().mean() for coded in model(crops)) / ITERATIONS)
        schedule.step()
        return loss

    return step, BATCH, len(places)
