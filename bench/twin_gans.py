"""Image generation as src/suite/tasks/image_generation.cc has it, step for step."""

import torch
import torch.nn.functional as F
from torch import nn


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
            loss = critic(generated).mean() - critic(images[own]).mean()
            of_critic.zero_grad()
            loss.backward()
            of_critic.step()
            with torch.no_grad():
                for parameter in critic.parameters():
                    parameter.clamp_(-0.01, 0.01)
            total += loss.item()
        critic.requires_grad_(False)
        loss = -critic(generator(torch.randn(part, noise, 1, 1))).mean()
        of_generator.zero_grad()
        loss.backward()
        of_generator.step()
        return (total + loss.item()) / (updates + 1)

    return step, updates * part, len(images)
