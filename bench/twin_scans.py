"""3D face recognition with the same steps as src/suite/tasks/face_recognition.cc. The scans are noise, which takes
the same time."""

import torch
import torch.nn.functional as F
from torch import nn

from twin_parts import Block, update, warmed_cosine

SIDE, PEOPLE, OF_EACH, WIDTH = 32, 20, 60, 8
BATCH, WARMUP, STEPS = 32, 20, 800


class ResNet8(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, WIDTH, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTH)
        self.blocks = nn.Sequential(Block(WIDTH, WIDTH, 1), Block(WIDTH, 2 * WIDTH, 2), Block(2 * WIDTH, 4 * WIDTH, 2))
        self.fc = nn.Linear(4 * WIDTH, PEOPLE)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn1(self.conv1(x)), inplace=True))
        return self.fc(x.mean((2, 3)))


def make(_data):
    """Makes the task without a data set."""
    count = PEOPLE * OF_EACH
    scans, people = torch.randn(count, 4, SIDE, SIDE), torch.arange(PEOPLE).repeat_interleave(OF_EACH)
    model = ResNet8()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = warmed_cosine(optimizer, WARMUP, STEPS)

    def step(index):
        down, right = (int(shift) for shift in torch.empty(2).uniform_(-2.49, 2.49).round())
        x = scans[index].roll((down, right), (2, 3))
        draw = torch.empty(len(index), 1, 1, 1).uniform_()
        colour, depth = (draw >= 0.15).float(), (draw < 0.85).float()
        given = torch.cat([colour.expand(-1, 3, 1, 1), depth], 1)
        loss = F.cross_entropy(model(x * given), people[index])
        found = update(optimizer, loss)
        schedule.step()
        return found

    return step, BATCH, count
