"""Image generation and image to image as src/suite/tasks has them, step for step."""

import torch
import torch.nn.functional as F
from torch import nn

from twin_parts import update


def start(module):
    """DCGAN's first weights."""
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0, 0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1, 0.02)


def generation(digits):
    """WGAN: five updates of the critic, each with a fifth of the batch, and one of the generator."""
    noise, width, updates, part = 32, 16, 5, 32
    images = F.avg_pool2d(F.pad(digits, (2, 2, 2, 2)), 2) * 2 - 1
    generator = nn.Sequential(
        nn.ConvTranspose2d(noise, 2 * width, 4, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(True),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
        nn.ConvTranspose2d(width, 1, 4, 2, 1, bias=False), nn.Tanh())  # fmt: skip
    critic = nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2, True),
        nn.Conv2d(2 * width, 1, 4, bias=False))  # fmt: skip
    networks = (generator.apply(start), critic.apply(start))
    of_generator, of_critic = (torch.optim.RMSprop(network.parameters(), 5e-4) for network in networks)

    def step(index):
        critic.requires_grad_(True)
        total = 0
        for own in index.chunk(updates):
            with torch.no_grad():
                generated = generator(torch.randn(len(own), noise, 1, 1))
            total += update(of_critic, critic(generated).mean() - critic(images[own]).mean())
            with torch.no_grad():
                for parameter in critic.parameters():
                    parameter.clamp_(-0.01, 0.01)
        critic.requires_grad_(False)
        total += update(of_generator, -critic(generator(torch.randn(part, noise, 1, 1))).mean())
        return total / (updates + 1)

    return step, updates * part, len(images)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width), nn.ReLU(True),
            nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width))  # fmt: skip

    def forward(self, x):
        return x + self.layers(x)


def translator(width=8, blocks=2):
    wide = 2 * width
    return nn.Sequential(
        nn.ReflectionPad2d(3), nn.Conv2d(3, width, 7), nn.InstanceNorm2d(width), nn.ReLU(True),
        nn.Conv2d(width, wide, 3, 2, 1), nn.InstanceNorm2d(wide), nn.ReLU(True), *(Block(wide) for _ in range(blocks)),
        nn.ConvTranspose2d(wide, width, 3, 2, 1, 1), nn.InstanceNorm2d(width), nn.ReLU(True),
        nn.ReflectionPad2d(3), nn.Conv2d(width, 3, 7), nn.Tanh()).apply(start)  # fmt: skip


def patch_critic(width=8):
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2, True),
        nn.Conv2d(width, 2 * width, 4, 2, 1), nn.InstanceNorm2d(2 * width), nn.LeakyReLU(0.2, True),
        nn.Conv2d(2 * width, 4 * width, 4, 1, 1), nn.InstanceNorm2d(4 * width), nn.LeakyReLU(0.2, True),
        nn.Conv2d(4 * width, 1, 4, 1, 1)).apply(start)  # fmt: skip


class Pool:
    def __init__(self, capacity, side):
        self.kept, self.count = torch.zeros(capacity, 3, side, side), 0

    def exchange(self, fresh):
        given = fresh.detach().clone()
        for i, (coin, place) in enumerate(torch.empty(len(fresh), 2).uniform_().tolist()):
            if self.count < len(self.kept):
                self.kept[self.count] = fresh[i].detach()
                self.count += 1
            elif coin < 0.5:
                place = min(int(place * len(self.kept)), len(self.kept) - 1)
                given[i] = self.kept[place]
                self.kept[place] = fresh[i].detach()
        return given


def translation(_data):
    """CycleGAN: an update of both translators and one of both critics. The pictures are noise: steps take as long."""
    count, side, batch, most_steps = 600, 32, 4, 400
    photos, maps = torch.rand(count, 3, side, side) * 2 - 1, torch.rand(count, 3, side, side) * 2 - 1
    to_map, to_photo, map_critic, photo_critic = translator(), translator(), patch_critic(), patch_critic()
    translators, critics = nn.ModuleList([to_map, to_photo]), nn.ModuleList([map_critic, photo_critic])
    of_translators, of_critics = (torch.optim.Adam(part.parameters(), 2e-3, betas=(0.5, 0.999)) for part in (translators, critics))
    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, max(0, 2 - 2 * step / most_steps)))
                 for optimizer in (of_translators, of_critics)]  # fmt: skip
    map_pool, photo_pool = Pool(50, side), Pool(50, side)

    def as_real(scores):
        return (scores - 1).square().mean()

    def step(index):
        draws = torch.empty(len(index)).uniform_()
        photo, label = photos[index], maps[(draws * count).long().clamp(max=count - 1)]
        critics.requires_grad_(False)
        made_map, made_photo = to_map(photo), to_photo(label)
        cycle = F.l1_loss(to_photo(made_map), photo) + F.l1_loss(to_map(made_photo), label)
        identity = F.l1_loss(to_map(label), label) + F.l1_loss(to_photo(photo), photo)
        deceived = as_real(map_critic(made_map)) + as_real(photo_critic(made_photo))
        total = update(of_translators, deceived + 10 * cycle + 5 * identity)
        critics.requires_grad_(True)
        old_map, old_photo = map_pool.exchange(made_map), photo_pool.exchange(made_photo)
        loss = as_real(map_critic(label)) + map_critic(old_map).square().mean()
        loss = loss + as_real(photo_critic(photo)) + photo_critic(old_photo).square().mean()
        total += update(of_critics, loss / 2)
        for schedule in schedules:
            schedule.step()
        return total / 2

    return step, batch, count
