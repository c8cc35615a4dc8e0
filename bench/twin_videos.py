"""Video prediction as src/suite/tasks/video_prediction.cc has it, step for step. Videos are noise: steps take as long."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from twin_parts import update, warmed_cosine

VIDEOS, FRAMES, CONTEXT, SIDE, COLOURS = 1500, 10, 2, 32, 3
CHANNELS, KERNEL, MOVED, MOVE_KERNEL, ACTIONS, STATES = 8, 3, 6, 5, 2, 2
BATCH, STEPS, RATE, SAMPLING, LARGEST_NORM, STATE_WEIGHT = 8, 400, 5e-3, 20, 1, 1e-4


class ConvLstm(nn.Module):
    def __init__(self, channels_in, channels):
        super().__init__()
        self.channels = channels
        self.gates = nn.Conv2d(channels_in + channels, 4 * channels, KERNEL, padding=KERNEL // 2)
        self.norm = nn.GroupNorm(1, channels)

    def forward(self, x, state):
        if state is None:
            state = [x.new_zeros(len(x), self.channels, *x.shape[2:])] * 2
        hidden, cell = state
        enter, new, keep, show = self.gates(torch.cat([x, hidden], 1)).chunk(4, 1)
        cell = cell * torch.sigmoid(keep + 1) + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.tanh(cell) * torch.sigmoid(show)
        return self.norm(hidden), (hidden, cell)


class Cdna(nn.Module):
    def __init__(self):
        super().__init__()
        a, b, c = CHANNELS, 2 * CHANNELS, 4 * CHANNELS
        self.reduce = nn.ModuleList([nn.Conv2d(COLOURS, a, 5, 2, 2, bias=False), nn.Conv2d(a, a, 3, 2, 1), nn.Conv2d(b, b, 3, 2, 1)])
        self.condition = nn.Conv2d(b + ACTIONS + STATES, b, 1)
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(n, n, 3, 2, 1, 1, bias=n != b) for n in (c, a + b, b))
        self.norms = nn.ModuleList([nn.GroupNorm(1, a), nn.GroupNorm(1, b)])
        self.recurrent = nn.ModuleList(ConvLstm(*sizes) for sizes in ((a, a), (a, b), (b, c), (c, b), (a + b, a)))
        self.create, self.masks = nn.Conv2d(b, COLOURS, 1), nn.Conv2d(b, MOVED + 2, 1)
        self.kernels = nn.Linear(c * (SIDE // 8) ** 2, MOVED * MOVE_KERNEL**2)
        self.state = nn.Linear(ACTIONS + STATES, STATES)

    def moved(self, frame, hidden):
        kernels = F.relu(self.kernels(hidden.flatten(1)) - 1e-12).view(len(frame) * MOVED, 1, -1) + 1e-12
        kernels = (kernels / kernels.sum(2, keepdim=True)).unflatten(2, (MOVE_KERNEL, MOVE_KERNEL))
        moved = F.conv2d(frame.transpose(0, 1), kernels, padding=MOVE_KERNEL // 2, groups=len(frame))
        return moved.unflatten(1, (len(frame), MOVED)).permute(1, 2, 0, 3, 4)

    def next(self, frame, conditions, states):
        def recur(x, layer):
            x, states[layer] = self.recurrent[layer](x, states[layer])
            return x

        half = F.relu(self.norms[0](self.reduce[0](frame)))
        quarter = F.relu(self.reduce[1](recur(half, 0)))
        x = F.relu(self.reduce[2](recur(quarter, 1)))
        x = torch.cat([x, conditions[:, :, None, None].expand(-1, -1, *x.shape[2:])], 1)
        smallest = recur(F.relu(self.condition(x)), 2)
        x = recur(F.relu(self.enlarge[0](smallest)), 3)
        x = recur(F.relu(self.enlarge[1](torch.cat([x, quarter], 1))), 4)
        x = F.relu(self.norms[1](self.enlarge[2](torch.cat([x, half], 1))))
        layers = torch.cat([frame.unsqueeze(1), torch.sigmoid(self.create(x)).unsqueeze(1), self.moved(frame, smallest)], 1)
        return (self.masks(x).softmax(1).unsqueeze(2) * layers).sum(1)

    def forward(self, frames, actions, states, is_true):
        predicted, positions, recurrent = [], [], [None] * len(self.recurrent)
        position = states[:, 0]
        for time in range(FRAMES - 1):
            frame = frames[:, time]
            if time >= CONTEXT:
                frame = torch.where(is_true[:, time, None, None, None], frame, predicted[-1])
            conditions = torch.cat([actions[:, time], position], 1)
            predicted.append(self.next(frame, conditions, recurrent))
            position = self.state(conditions)
            positions.append(position)
        return torch.stack(predicted, 1), torch.stack(positions, 1)


def make(_data):
    """No data set is read."""
    frames = torch.randint(256, (VIDEOS, FRAMES, COLOURS, SIDE, SIDE), dtype=torch.uint8)
    actions = torch.empty(VIDEOS, FRAMES, ACTIONS).uniform_(-1, 1)
    states = torch.empty(VIDEOS, FRAMES, STATES).uniform_(-1, 1)
    model = Cdna()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = warmed_cosine(optimizer, 0, STEPS)
    done = 0

    def step(index):
        nonlocal done
        videos = frames.index_select(0, index).float() / 255
        of_videos = states.index_select(0, index)
        share = SAMPLING / (SAMPLING + math.exp(done / SAMPLING))
        is_true = torch.empty(FRAMES, len(index)).uniform_().argsort(1).lt(round(share * len(index))).t()
        predicted, positions = model(videos, actions.index_select(0, index), of_videos, is_true)
        loss = F.mse_loss(predicted[:, CONTEXT - 1:], videos[:, CONTEXT:])
        loss = loss + STATE_WEIGHT * F.mse_loss(positions[:, CONTEXT - 1:], of_videos[:, CONTEXT:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
        optimizer.step()
        schedule.step()
        done += 1
        return loss.item()

    return step, BATCH, VIDEOS
