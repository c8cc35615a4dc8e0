"""Image to text at the suite's smoke scale in Python: pictures of one to three coloured shapes, drawn in each step,
and an LSTM that learns to describe them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

SCENES = 16_000
SIDE = 32
MOST_SHAPES = 3
ARTICLES = 2
START, END = 0, 1
FIRST_ARTICLE, ABOVE, BELOW, BESIDE, FIRST_COLOUR, FIRST_KIND = 3, 5, 6, 7, 8, 12
COLOURS = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
HALF_SIZES = torch.tensor([[1, 1], [0.35, 0.35], [1, 0.35], [0.35, 1]])  # width, height
WORDS = FIRST_KIND + len(HALF_SIZES)
WARMUP, MOST_STEPS = 50, 900
PARAMETERS = 328_352


class Scenes:
    """The training scenes: a row for each, with room for three shapes and their sentence."""

    def __init__(self):
        shape = (SCENES, MOST_SHAPES)
        counts = torch.randint(1, MOST_SHAPES + 1, (SCENES,))
        there = torch.arange(MOST_SHAPES) < counts.unsqueeze(1)
        # Columns without a shape come last.
        columns = torch.rand(shape).argsort(1).masked_fill(~there, MOST_SHAPES).sort(1)[0]
        colours = torch.rand(SCENES, len(COLOURS)).argsort(1)[:, :MOST_SHAPES]
        kinds = torch.randint(len(HALF_SIZES), shape)
        rows = torch.randint(2, shape)
        x = (columns + 0.5) * (SIDE / MOST_SHAPES) + torch.empty(shape).uniform_(-0.5, 0.5)
        y = (rows + 0.5) * (SIDE / 2) + torch.empty(shape).uniform_(-2, 2)
        half = HALF_SIZES[kinds] * torch.empty(*shape, 1).uniform_(3.8, 4.8)
        half = half.masked_fill(~there.unsqueeze(2), -1)
        self.boxes = torch.stack([x, y, half[..., 0], half[..., 1]], 2)
        self.colours = COLOURS[colours] * torch.empty(*shape, 1).uniform_(0.75, 1)
        self.grounds = torch.empty(SCENES).uniform_(0, 0.3)
        places = torch.where(rows[:, :-1] < rows[:, 1:], ABOVE, torch.where(rows[:, :-1] > rows[:, 1:], BELOW, BESIDE))
        articles = FIRST_ARTICLE + torch.randint(ARTICLES, shape)
        words = torch.stack([articles, FIRST_COLOUR + colours, FIRST_KIND + kinds, F.pad(places, (0, 1), value=END)], 2).flatten(1)
        self.lengths = 4 * counts  # of sentences and their ends
        self.next = words.masked_fill(torch.arange(words.shape[1]) >= self.lengths.unsqueeze(1) - 1, END)
        self.before = F.pad(self.next[:, :-1], (1, 0), value=START)

    def render(self, index):
        """Returns [N, 3, SIDE, SIDE], from 0 to 1."""
        places = torch.arange(SIDE) + 0.5
        x, y, width, height = self.boxes[index].unsqueeze(3).unbind(2)
        inside = ((places - y).abs() <= height).unsqueeze(3) & ((places - x).abs() <= width).unsqueeze(2)
        pictures = self.grounds[index].view(-1, 1, 1, 1).expand(-1, 3, SIDE, SIDE)
        colours = self.colours[index]
        for shape in range(MOST_SHAPES):
            pictures = torch.where(inside[:, shape, None], colours[:, shape, :, None, None], pictures)
        return pictures

    def sentences(self, index):
        """Returns the words before each, the places in N × T with a word to predict, and these words."""
        lengths = self.lengths[index]
        steps = int(lengths.max())
        places = (torch.arange(steps) < lengths.unsqueeze(1)).flatten().nonzero().squeeze(1)
        return self.before[index, :steps], places, self.next[index, :steps].flatten()[places]


class Captioner(nn.Module):
    def __init__(self, width=128, hidden=128):
        super().__init__()
        layers, channels = [], 3
        for maps in (16, 32, 64, 64):
            layers += [nn.Conv2d(channels, maps, 3, padding=1, bias=False), nn.BatchNorm2d(maps), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
            nn.init.kaiming_normal_(layers[-4].weight, mode="fan_out")
            channels = maps
        self.see = nn.Sequential(*layers[:-1], nn.Flatten(), nn.Linear(channels * 16, width), nn.BatchNorm1d(width))
        self.words = nn.Embedding(WORDS, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)
        self.next = nn.Linear(hidden, WORDS)

    def forward(self, pictures, before, places):
        said = torch.cat([self.see(pictures).unsqueeze(1), self.words(before)], 1)
        states = self.lstm(said)[0][:, 1:].reshape(-1, self.lstm.hidden_size)
        return self.next(states.index_select(0, places))


def rate_factor(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return (1 + math.cos(math.pi * min(1, (step - WARMUP) / (MOST_STEPS - WARMUP)))) / 2


def make(data):
    scenes = Scenes()
    model = Captioner()
    parameters = list(model.parameters())
    assert sum(parameter.numel() for parameter in parameters) == PARAMETERS
    optimizer = torch.optim.Adam(parameters, 3e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_factor)

    def step(index):
        before, places, following = scenes.sentences(index)
        loss = F.cross_entropy(model(scenes.render(index) * 2 - 1, before, places), following)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 5)
        optimizer.step()
        schedule.step()
        return loss.item()

    return step, 64, SCENES
