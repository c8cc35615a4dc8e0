"""The smoke task of object detection in Python, for bench/suite_twins.py: Faster R-CNN on generated shapes, with the
same steps as src/suite/tasks/object_detection.cc."""

import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from twin_parts import update, warmed_cosine

SCENES, SIDE, MOST_SHAPES, CLASSES = 2000, 64, 3, 3
BATCH, STEPS, WARMUP = 16, 800, 50
STRIDE, ANCHOR_SIDES = 8, (14, 20, 28)
LARGEST_LOG_RATIO = math.log(1000 / 16)


def draw_texture(draw):
    angle, length = draw.uniform(0, 2 * math.pi), 2 * math.pi / draw.uniform(5, 20)
    return [draw.uniform(0.1, 0.9) for _ in range(3)], length * math.cos(angle), length * math.sin(angle), draw.uniform(0, 2 * math.pi)


def draw_box(draw):
    side, stretch = draw.uniform(14, 30), draw.uniform(0.85, 1.18)
    width, height = round(side * stretch), round(side / stretch)
    left, top = draw.randint(0, SIDE - width), draw.randint(0, SIDE - height)
    return left, top, left + width, top + height


def overlap_of(a, b):
    common = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def fill(canvas, texture, box, label):
    (left, top, right, bottom), (colour, x, y, phase) = box, texture
    px = torch.arange(left, right) + 0.5
    py = (torch.arange(top, bottom) + 0.5).unsqueeze(1)
    u, v = (px - left) / (right - left) - 0.5, (py - top) / (bottom - top)
    pixels = torch.tensor(colour).view(3, 1, 1) + 0.12 * (x * px + y * py + phase).sin()
    part = canvas[:, top:bottom, left:right]
    if label == 1:
        part.copy_(pixels)
    else:
        part.copy_(torch.where(u * u + (v - 0.5) ** 2 <= 0.25 if label == 0 else 2 * u.abs() <= v, pixels, part))


def scenes(count, seed):
    """Returns pictures with their objects: boxes and labels from 1, both 0 if a picture has fewer objects than
    others."""
    draw = random.Random(seed)
    pictures = torch.zeros(count, 3, SIDE, SIDE)
    boxes, labels = torch.zeros(count, MOST_SHAPES, 4), torch.zeros(count, MOST_SHAPES, dtype=torch.long)
    for number in range(count):
        ground, found = draw_texture(draw), []
        fill(pictures[number], ground, (0, 0, SIDE, SIDE), 1)
        for _ in range(draw.randint(1, MOST_SHAPES)):
            label, texture = draw.randrange(CLASSES), draw_texture(draw)
            while sum(abs(a - b) for a, b in zip(texture[0], ground[0])) < 0.7:
                texture = draw_texture(draw)
            for _ in range(20):
                box = draw_box(draw)
                if all(overlap_of(other, box) <= 0.05 for other in found):
                    fill(pictures[number], texture, box, label)
                    boxes[number, len(found)], labels[number, len(found)] = torch.tensor(box), label + 1
                    found.append(box)
                    break
    return pictures.add_(torch.empty_like(pictures).uniform_(-0.06, 0.06)), boxes, labels


def overlaps(a, b):
    """Returns overlaps of boxes [..., N, 4] with boxes [..., M, 4]: [..., N, M], NaN if both have no area."""
    left, top, right, bottom = a.unsqueeze(-2).unbind(-1)
    other_left, other_top, other_right, other_bottom = b.unsqueeze(-3).unbind(-1)
    width = (torch.minimum(right, other_right) - torch.maximum(left, other_left)).clamp_(min=0)
    height = (torch.minimum(bottom, other_bottom) - torch.maximum(top, other_top)).clamp_(min=0)
    common = width * height
    return common / ((right - left) * (bottom - top) + (other_right - other_left) * (other_bottom - other_top) - common)


def encode(boxes, against):
    size, other = boxes[:, 2:] - boxes[:, :2], against[:, 2:] - against[:, :2]
    middles = (boxes[:, :2] + boxes[:, 2:] - against[:, :2] - against[:, 2:]) / 2
    return torch.cat([middles / other, (size / other).log()], 1)


def decode(codes, against):
    size = against[..., 2:] - against[..., :2]
    middle = (against[..., :2] + against[..., 2:]) / 2 + codes[..., :2] * size
    half = codes[..., 2:].clamp(max=LARGEST_LOG_RATIO).exp() * size / 2
    return torch.cat([middle - half, middle + half], -1)


def choose(candidates, count):
    """Returns at most `count` (a number, or one per row) of each row's candidates, drawn at random."""
    keys = torch.rand(candidates.shape).masked_fill_(~candidates, 2)
    ordered = keys.sort(1)[0]
    return keys < (ordered[:, count:count + 1] if isinstance(count, int) else ordered.gather(1, count))


def is_kept(boxes, asked, most_overlap, most):
    """Suppresses non-maxima of boxes [N, K, 4], best first: a box stays unless it overlaps a better one that stays."""
    hits = (overlaps(boxes, boxes) > most_overlap).triu_(1).float()
    kept = asked
    while True:  # each round settles at least one more box of a chain
        after = asked & (torch.bmm(kept.float().unsqueeze(1), hits).squeeze(1) == 0)
        if after.equal(kept):
            return kept & (kept.cumsum(1) <= most)
        kept = after


def roi_align(features, boxes, side, points=2):
    """Returns features of boxes [N, K, 4] as [N, K, C, side, side]."""
    count, across = boxes.shape[1], side * points
    share = (torch.arange(across) + 0.5) / across
    begin, end = boxes[..., None, :2], boxes[..., None, 2:]
    places = 2 * (begin + share.unsqueeze(1) * (end - begin)) / (features.shape[-1] * STRIDE) - 1
    x, y = places[:, :, None, :, 0], places[:, :, :, None, 1]
    grid = torch.stack(torch.broadcast_tensors(x, y), -1).view(len(boxes), count * across, across, 2)
    read = F.grid_sample(features, grid, padding_mode="border", align_corners=False)
    return F.avg_pool2d(read, points).view(len(boxes), -1, count, side, side).transpose(1, 2)


class FasterRcnn(nn.Module):
    def __init__(self, proposal_width=64, region_side=4, head_width=128):
        super().__init__()
        layers, channels = [], 3
        for number, width in enumerate((24, 48, 64, 64, 64)):
            convolution = nn.Conv2d(channels, width, 3, 2 if number < 3 else 1, 1, bias=False)
            nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
            layers += [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            channels = width
        self.trunk = nn.Sequential(*layers)
        self.region_side = region_side
        self.head = nn.Linear(channels * region_side * region_side, head_width)
        self.proposer = nn.Conv2d(channels, proposal_width, 3, padding=1)
        self.proposer_logits = nn.Conv2d(proposal_width, 2 * len(ANCHOR_SIDES), 1)
        self.proposer_codes = nn.Conv2d(proposal_width, 4 * len(ANCHOR_SIDES), 1)
        self.classes, self.codes = nn.Linear(head_width, CLASSES + 1), nn.Linear(head_width, 4 * (CLASSES + 1))
        for layer in (self.proposer, self.proposer_logits, self.proposer_codes, self.classes, self.codes):
            nn.init.normal_(layer.weight, 0, 0.001 if layer is self.codes else 0.01)
            nn.init.zeros_(layer.bias)
        middles = (torch.arange(SIDE // STRIDE) + 0.5) * STRIDE
        y, x = torch.meshgrid(middles, middles, indexing="ij")
        half = torch.tensor(ANCHOR_SIDES) / 2
        around = torch.stack([-half, -half, half, half], 1)
        self.register_buffer("anchors", (torch.stack([x, y, x, y], 2).unsqueeze(2) + around).view(-1, 4))
        self.register_buffer("deviations", torch.tensor([0.1, 0.1, 0.2, 0.2]))
        self.register_buffer("later", torch.arange(1.0, MOST_SHAPES + 1))

    @torch.no_grad()
    def targets_of_anchors(self, boxes, samples=64, least_positive=0.6, most_negative=0.3):
        """Returns labels by anchor (1 an object, 0 none, -100 ignored), and the rows of objects with their codes."""
        overlap = overlaps(self.anchors, boxes)
        best, which = overlap.max(2)
        is_best = (overlap == overlap.amax(1, keepdim=True)) & (overlap > 0)
        is_clear = best >= least_positive
        which = torch.where(is_clear, which, (overlap + is_best * self.later).argmax(2))
        positive = is_clear | is_best.any(2)
        chosen = choose(positive, samples // 2)
        others = choose(~positive & (best < most_negative), samples - chosen.sum(1, keepdim=True))
        labels = torch.full(best.shape, -100).masked_fill_(others, 0).masked_fill_(chosen, 1)
        picture, anchor = chosen.nonzero(as_tuple=True)
        codes = encode(boxes[picture, which[picture, anchor]], self.anchors[anchor])
        return labels.view(-1), picture * len(self.anchors) + anchor, codes

    @torch.no_grad()
    def propose(self, logits, codes, before=100, after=50, most_overlap=0.7, least_side=1):
        """Returns boxes [N, before, 4], and which of them are proposed."""
        order = (logits[..., 1] - logits[..., 0]).topk(before)[1]
        picked = codes.gather(1, order.unsqueeze(2).expand(-1, -1, 4))
        boxes = decode(picked, self.anchors[order]).clamp_(0, SIDE)
        is_large = (boxes[..., 2:] - boxes[..., :2] >= least_side).all(2)
        return boxes, is_kept(boxes, is_large, most_overlap, after)

    @torch.no_grad()
    def targets_of_regions(self, proposals, proposed, boxes, labels, samples=32, positive_share=0.25, least_positive=0.5):
        """Returns regions [N, K, 4], the sampled rows with their labels, and the places of objects in these with
        their codes."""
        proposals, proposed = torch.cat([proposals, boxes], 1), torch.cat([proposed, labels > 0], 1)
        best, which = overlaps(proposals, boxes).max(2)
        positive = proposed & (best >= least_positive)
        chosen = choose(positive, int(samples * positive_share))
        counts = chosen.sum(1, keepdim=True)
        taken = chosen | choose(proposed & ~positive, samples - counts)
        most = int(taken.sum(1).max())
        kinds, order = (taken.int() + chosen.int()).topk(most)  # 2: an object's, 1: background, 0: none
        regions = proposals.gather(1, order.unsqueeze(2).expand(-1, -1, 4))
        picture, number = kinds.nonzero(as_tuple=True)
        rows = picture * most + number
        which = which[picture, order[picture, number]]
        wanted = labels[picture, which] * (kinds[picture, number] == 2)
        places = wanted.nonzero().squeeze(1)
        objects = boxes[picture[places], which[places]]
        return regions, rows, wanted, places, encode(objects, regions.view(-1, 4)[rows[places]]) / self.deviations

    def forward(self, pictures, boxes, labels):
        features = self.trunk(pictures)
        hidden = F.relu(self.proposer(features))
        logits, codes = (layer(hidden).permute(0, 2, 3, 1).reshape(len(pictures), len(self.anchors), -1)
                         for layer in (self.proposer_logits, self.proposer_codes))
        wanted, rows, wanted_codes = self.targets_of_anchors(boxes)
        distance = F.smooth_l1_loss(codes.flatten(0, 1).index_select(0, rows), wanted_codes, reduction="sum", beta=1 / 9)
        loss = F.cross_entropy(logits.flatten(0, 1), wanted) + distance / (wanted >= 0).sum()

        proposals, proposed = self.propose(logits, codes)
        regions, rows, wanted, places, wanted_codes = self.targets_of_regions(proposals, proposed, boxes, labels)
        found = roi_align(features, regions, self.region_side).flatten(2).flatten(0, 1)
        found = found if len(rows) == len(found) else found.index_select(0, rows)
        found = F.relu(self.head(found))
        codes = self.codes(found).view(-1, 4).index_select(0, places * (CLASSES + 1) + wanted[places])
        return loss + F.cross_entropy(self.classes(found), wanted) + F.smooth_l1_loss(codes, wanted_codes, reduction="sum") / len(wanted)


def make(data):
    """Makes the task without a data set, because the scenes are drawn."""
    pictures, boxes, labels = scenes(SCENES, 9)
    mirrored = torch.stack([SIDE - boxes[..., 2], boxes[..., 1], SIDE - boxes[..., 0], boxes[..., 3]], 2) * (labels > 0).unsqueeze(2)
    model = FasterRcnn()
    assert sum(parameter.numel() for parameter in model.parameters()) == 284798
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    schedule = warmed_cosine(optimizer, WARMUP, STEPS)

    def step(index):
        x, where = pictures[index], boxes
        if torch.rand(()) < 0.5:
            x, where = x.flip(3), mirrored
        loss = model((x - 0.5) / 0.25, where[index], labels[index])
        found = update(optimizer, loss)
        schedule.step()
        return found

    return step, BATCH, SCENES
