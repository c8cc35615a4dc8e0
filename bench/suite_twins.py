"""The suite's smoke tasks in Python, with the same steps as src/suite/tasks, for comparison in `bench/suite_steps`.

    python suite_twins.py TASK DATA THREADS WARMUP STEPS

prints the seconds of each timed step as JSON.
"""

import json
import math
import pathlib
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

import twin_captions
import twin_cells
import twin_compression
import twin_detection
import twin_faces
import twin_gans
import twin_scans
import twin_solids
import twin_speech
import twin_summaries
import twin_videos
import twin_words
from twin_parts import Block, idx, update


def digits(data):
    """Returns the 4,000 training digits."""
    folder = pathlib.Path(data) / "mnist-5k"
    images = idx(folder / "images-idx3-ubyte").float().div(255).unsqueeze(1)
    labels = idx(folder / "labels-idx1-ubyte").long()
    learned = (torch.arange(len(labels)) % 5 != 0).nonzero().squeeze(1)
    return images[learned], labels[learned]


class ResNet14(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        blocks, channels = [], 16
        for stage, width in enumerate((16, 32, 64)):
            for block in range(2):
                blocks.append(Block(channels, width, 2 if stage and not block else 1))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn1(self.conv1(x)), inplace=True))
        return self.fc(x.mean((2, 3)))


def image_classification(data):
    images, labels = digits(data)
    model = ResNet14()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)

    def step(index):
        down, right = (int(shift) for shift in torch.empty(2).uniform_(-2.49, 2.49).round())
        x = images[index].roll((down, right), (2, 3))
        loss = F.cross_entropy(model((x - 0.1307) / 0.3081), labels[index])
        return update(optimizer, loss)

    return step, 64, len(labels)


class Stn(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc1, self.loc2 = nn.Conv2d(1, 8, 7), nn.Conv2d(8, 10, 5)
        self.hidden, self.map = nn.Linear(90, 32), nn.Linear(32, 6)
        nn.init.zeros_(self.map.weight)
        self.map.bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x):
        y = F.relu(F.max_pool2d(self.loc1(x), 2))
        y = F.relu(F.max_pool2d(self.loc2(y), 2))
        theta = self.map(F.relu(self.hidden(y.flatten(1)))).view(-1, 2, 3)
        x = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
        y = F.relu(F.max_pool2d(self.conv1(x), 2))
        y = F.relu(F.max_pool2d(F.dropout2d(self.conv2(y), training=self.training), 2))
        return self.fc2(F.dropout(F.relu(self.fc1(y.flatten(1))), training=self.training))


def spatial_transformer(data):
    images, labels = digits(data)
    model = Stn()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)

    def step(index):
        n = len(index)
        angle = torch.empty(n).uniform_(-math.pi / 3, math.pi / 3)
        scale = torch.empty(n).uniform_(0.9, 1.5)
        shift = torch.empty(n, 2).uniform_(-0.3, 0.3)
        cosine, sine = angle.cos() * scale, angle.sin() * scale
        theta = torch.stack([torch.stack([cosine, -sine, shift[:, 0]], 1), torch.stack([sine, cosine, shift[:, 1]], 1)], 1)
        x = images[index]
        x = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
        loss = F.cross_entropy(model((x - 0.1307) / 0.3081), labels[index])
        return update(optimizer, loss)

    return step, 64, len(labels)


class Caser(nn.Module):
    def __init__(self, users, items, width, length=5, vertical=2, horizontal=16):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items + 1, width)
        self.vertical = nn.Conv2d(1, vertical, (length, 1))
        self.horizontal = nn.ModuleList(nn.Conv2d(1, horizontal, (rows, width)) for rows in range(1, length + 1))
        self.hidden = nn.Linear(vertical * width + horizontal * length, width)
        self.answers, self.bias = nn.Embedding(items + 1, 2 * width), nn.Embedding(items + 1, 1)
        for embedding, deviation in ((self.users, 1 / width), (self.items, 1 / width), (self.answers, 0.5 / width), (self.bias, 0)):
            nn.init.normal_(embedding.weight, 0, deviation)

    def forward(self, sequences, users, items):
        picture = self.items(sequences).unsqueeze(1)
        found = [self.vertical(picture).flatten(1)]
        found += [filters(picture).squeeze(3).max(2)[0] for filters in self.horizontal]
        hidden = self.hidden(F.dropout(torch.cat(found, 1), 0.5, self.training)).sigmoid()
        features = torch.cat([hidden, self.users(users)], 1)
        return self.answers(items).matmul(features.unsqueeze(2)).squeeze(2) + self.bias(items).squeeze(2)


def learning_to_rank(data):
    """Trains the teacher, in the first steps of the task."""
    length, targets, negatives = 5, 3, 3
    users, items, learned = {}, {}, []
    for line in (pathlib.Path(data) / "nycflights/train.txt").read_text().splitlines():
        user, item, _ = line.split()
        if user not in users:
            users[user] = len(users)
            learned.append([])
        learned[users[user]].append(items.setdefault(item, len(items) + 1))
    rows = []
    for user, chosen in enumerate(learned):
        if len(chosen) <= targets:
            continue
        chosen = [0] * (length + targets - len(chosen)) + chosen
        rows += [(user, *chosen[end - length - targets:end]) for end in range(length + targets, len(chosen) + 1)]
    windows = torch.tensor(rows)
    unseen = [sorted(set(range(1, len(items) + 1)) - set(chosen)) or list(range(1, len(items) + 1)) for chosen in learned]
    counts = torch.tensor([len(own) for own in unseen])
    table = torch.tensor([own + [0] * (len(items) - len(own)) for own in unseen])
    model = Caser(len(users), len(items), 32)
    optimizer = torch.optim.Adam(model.parameters(), 6e-3, weight_decay=1e-6)

    def step(index):
        batch = windows[index]
        who = batch[:, 0]
        draws = (torch.empty(len(index), negatives).uniform_() * counts[who].unsqueeze(1)).long()
        answers = torch.cat([batch[:, 1 + length:], table[who.unsqueeze(1), draws]], 1)
        scores = model(batch[:, 1:1 + length], who, answers)
        wanted = torch.zeros_like(scores)
        wanted[:, :targets] = 1
        loss = F.binary_cross_entropy_with_logits(scores, wanted, reduction="none").sum(1).mean()
        return update(optimizer, loss)

    return step, 256, len(windows)


class NeuMf(nn.Module):
    def __init__(self, users, items, factors=8, widths=(64, 32, 16)):
        super().__init__()
        self.factors = nn.ModuleList([nn.Embedding(users, factors), nn.Embedding(items, factors)])
        self.embeddings = nn.ModuleList([nn.Embedding(users, widths[0] // 2), nn.Embedding(items, widths[0] // 2)])
        for embedding in (*self.factors, *self.embeddings):
            nn.init.normal_(embedding.weight, 0, 0.01)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.answer = nn.Linear(factors + widths[-1], 1)

    def forward(self, users, items):
        everyone = users.unsqueeze(1).expand_as(items)
        product = self.factors[0](users).unsqueeze(1) * self.factors[1](items)
        x = torch.cat([self.embeddings[0](everyone), self.embeddings[1](items)], 2)
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.answer(torch.cat([product, x], 2)).squeeze(2)


def recommendation(data):
    """Uses the destinations of airplanes, each airport once. The last one of each airplane with three or more is
    held out."""
    negatives = 4
    users, items, chosen = {}, {}, []
    for name in ("train", "test"):
        for line in (pathlib.Path(data) / f"nycflights/{name}.txt").read_text().splitlines():
            user, item, _ = line.split()
            if user not in users:
                users[user] = len(users)
                chosen.append({})
            if name == "train" or item in items:
                chosen[users[user]][items.setdefault(item, len(items))] = True
    learned = [list(own)[:-1] if len(own) >= 3 else list(own) for own in chosen]
    samples = torch.tensor([(user, item) for user, own in enumerate(learned) for item in own])
    unseen = [sorted(set(range(len(items))) - set(own)) for own in learned]
    counts = torch.tensor([len(own) for own in unseen])
    table = torch.tensor([own + [0] * (len(items) - len(own)) for own in unseen])
    model = NeuMf(len(users), len(items))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)

    def step(index):
        who, what = samples[index].unbind(1)
        draws = (torch.empty(len(index), negatives).uniform_() * counts[who].unsqueeze(1)).long()
        scores = model(who, torch.cat([what.unsqueeze(1), table[who.unsqueeze(1), draws]], 1))
        wanted = torch.zeros_like(scores)
        wanted[:, 0] = 1
        return update(optimizer, F.binary_cross_entropy_with_logits(scores, wanted))

    return step, 256, len(samples)


class Dlrm(nn.Module):
    def __init__(self, tables, numbers, width=8, bottom=(32,), top=(32, 16, 1)):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in tables)
        for table, rows in zip(self.tables, tables):
            nn.init.uniform_(table.weight, -1 / math.sqrt(rows), 1 / math.sqrt(rows))
        widths = (numbers, *bottom, width)
        self.bottom = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        vectors = len(tables) + 1
        widths = (width + vectors * (vectors - 1) // 2, *top)
        self.top = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        for layer in (*self.bottom, *self.top):
            nn.init.normal_(layer.weight, 0, math.sqrt(2 / (layer.in_features + layer.out_features)))
            nn.init.normal_(layer.bias, 0, math.sqrt(1 / layer.out_features))
        self.pairs = torch.tensor([row * vectors + column for row in range(vectors) for column in range(row)])

    def forward(self, numbers, categories):
        x = numbers
        for layer in self.bottom:
            x = F.relu(layer(x))
        vectors = torch.stack([x] + [table(categories[:, i]) for i, table in enumerate(self.tables)], 1)
        products = vectors.bmm(vectors.transpose(1, 2)).flatten(1)[:, self.pairs]
        y = torch.cat([x, products], 1)
        for layer in self.top[:-1]:
            y = F.relu(layer(y))
        return self.top[-1](y).squeeze(1)


def advertising(_):
    """Uses the sizes of the generated clicks, which are only timed here, not learned."""
    rows, samples = (10, 15, 20, 30, 50, 80, 150, 300), 100_000
    numbers = torch.randn(samples, 4)
    categories = torch.stack([torch.multinomial(1 / torch.arange(1.0, count + 1) ** 1.05, samples, True) for count in rows], 1)
    labels = (torch.rand(samples) < 0.3).float()
    model = Dlrm(rows, 4)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)

    def step(index):
        logits = model(numbers[index], categories[index])
        return update(optimizer, F.binary_cross_entropy_with_logits(logits, labels[index]))

    return step, 256, samples


TWINS = {
    "architecture-search": twin_cells.make,
    "image-classification": image_classification,
    "image-compression": twin_compression.make,
    "image-generation": lambda data: twin_gans.generation(digits(data)[0]),
    "image-to-image": twin_gans.translation,
    "image-to-text": twin_captions.make,
    "3d-face-recognition": twin_scans.make,
    "3d-object-reconstruction": twin_solids.make,
    "video-prediction": twin_videos.make,
    "face-embedding": twin_faces.make,
    "object-detection": twin_detection.make,
    "speech-recognition": twin_speech.make,
    "spatial-transformer": spatial_transformer,
    "learning-to-rank": learning_to_rank,
    "recommendation": recommendation,
    "advertising": advertising,
    "summarization": twin_summaries.make,
    "text-to-text": twin_words.translation,
    "language-modelling": twin_words.language_modelling,
}


def main():
    task, data, threads, warmup, steps = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    step, batch, samples = TWINS[task](data)
    seconds = []
    for number in range(int(warmup) + int(steps)):
        index = torch.randint(samples, (batch,))
        begin = time.perf_counter()
        step(index)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps(seconds[int(warmup):]))


if __name__ == "__main__":
    main()
