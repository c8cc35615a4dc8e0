"""Programs of the kinds that people write: trainers, adapters, serving, reinforcement learning, ranks over Gloo.

    python bench/programs.py NAME --steps N
    torchrun --nproc-per-node=2 bench/programs.py NAME --steps N    # for the names in RANKS

Unlike bench/workloads.py and bench/models.py, which repeat one step on one input, these are whole programs: data
loaders, schedulers, clipping, changing shapes, logging. A step takes 20 to 300 ms on one core. Weights and data are
random, and nothing is downloaded. Requires `pip install transformers diffusers peft lightning scipy` for the names
in NEEDS.
"""

import argparse
import contextlib
import copy
import logging
import os
import tempfile
import warnings

import torch
import torch.nn.functional as F
from torch import nn

WORDS = 2000
# Packages that a program imports in addition to torch.
NEEDS = {
    "hf_trainer": ["transformers", "accelerate"],
    "lightning_bf16": ["lightning"],
    "lora": ["transformers", "peft"],
    "serving": ["transformers"],
    "grpo": ["transformers"],
    "ddpm_ema": ["diffusers"],
    "ddim_sampling": ["diffusers"],
}
# Programs with two ranks.
RANKS = ["ddp_no_sync", "fsdp2", "tensor_parallel", "pipeline_1f1b"]


def text_dataset(rows, shortest, longest, seed=0):
    """Sequences of random words of different lengths."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(shortest, longest + 1, (rows,), generator=generator).tolist()
    return [torch.randint(2, WORDS, (length,), generator=generator) for length in lengths]


def llama(layers=4, hidden=192):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=WORDS, hidden_size=hidden, intermediate_size=hidden * 8 // 3, num_hidden_layers=layers,
            num_attention_heads=6, num_key_value_heads=3, max_position_embeddings=512, pad_token_id=0, eos_token_id=1,
        )
    )


def hf_trainer(steps):
    """Hugging Face's Trainer: BERT classifies sentences that are padded to the longest of their batch."""
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    config = BertConfig(
        vocab_size=WORDS, hidden_size=192, num_hidden_layers=4, num_attention_heads=6, intermediate_size=768, num_labels=5
    )
    rows = [{"input_ids": ids, "label": int(ids.sum()) % 5} for ids in text_dataset(256, 60, 64)]

    def collate(batch):
        ids = nn.utils.rnn.pad_sequence([row["input_ids"] for row in batch], batch_first=True)
        return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor([row["label"] for row in batch])}

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=steps, per_device_train_batch_size=16, learning_rate=1e-4, warmup_steps=10, use_cpu=True,
            logging_steps=10, save_strategy="no", report_to=[], disable_tqdm=True, dataloader_pin_memory=False,
        )
        Trainer(BertForSequenceClassification(config), arguments, train_dataset=rows, data_collator=collate).train()


def lightning_bf16(steps):
    """Lightning's Trainer with bfloat16 autocast: a convolutional network with augmented images and a schedule of rates."""
    import lightning as L

    class Classifier(L.LightningModule):
        def __init__(self):
            super().__init__()
            layers, width = [], 3
            for channels in (32, 64, 128):
                layers += [nn.Conv2d(width, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.SiLU()]
                layers += [nn.Conv2d(channels, channels, 3, 1, 1, groups=channels), nn.GroupNorm(8, channels), nn.SiLU()]
                width = channels
            self.net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(width, 20))

        def training_step(self, batch, index):
            x, y = batch
            if torch.rand(()) < 0.5:
                x = x.flip(-1)
            loss = F.cross_entropy(self.net(x), y, label_smoothing=0.1)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), 1e-3)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    data = torch.utils.data.TensorDataset(torch.randn(512, 3, 96, 96), torch.randint(0, 20, (512,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
    L.Trainer(
        max_steps=steps, max_epochs=-1, precision="bf16-mixed", accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0,
    ).fit(Classifier(), loader)


def lora(steps):
    """Low-rank adapters of a Llama: frozen weights, labels of -100 before the answer, clipping, a schedule of rates."""
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(llama(), LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05, target_modules=["q_proj", "v_proj"]))
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    ids = torch.stack([row[:96] for row in text_dataset(64, 96, 120)])
    labels = ids.clone()
    labels[:, :32] = -100
    model.train()
    for step in range(steps):
        rows = torch.randint(0, len(ids), (4,))
        loss = model(input_ids=ids[rows], labels=labels[rows]).loss
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def serving(steps):
    """A server of answers: prompts that are padded on the left, words drawn from the likeliest, a cache of keys and values."""
    model = llama().eval()
    for step in range(steps):
        ids = torch.randint(2, WORDS, (2, 40))
        ids[0, :8] = 0
        model.generate(
            ids, attention_mask=(ids > 0).long(), max_new_tokens=6, min_new_tokens=6, do_sample=True, top_k=20, temperature=0.8,
            pad_token_id=0,
        )


def grpo(steps):
    """Policy optimization in groups: answers are sampled and rewarded, and the policy moves towards the better ones
    of each group."""
    policy, group, prompt = llama(layers=2), 4, 24
    reference = copy.deepcopy(policy).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), 1e-5)

    def log_probabilities(model, ids):
        logits = model(ids[:, :-1]).logits[:, prompt - 1 :].float()
        return logits.log_softmax(-1).gather(-1, ids[:, prompt:, None]).squeeze(-1)

    for step in range(steps):
        ids = torch.randint(2, WORDS, (2, prompt)).repeat_interleave(group, 0)
        with torch.no_grad():
            ids = policy.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, min_new_tokens=8, do_sample=True, pad_token_id=0)
            before = log_probabilities(policy, ids)
            anchor = log_probabilities(reference, ids)
            rewards = (ids[:, prompt:] % 7 == 0).float().sum(-1).view(-1, group)
            advantages = ((rewards - rewards.mean(-1, keepdim=True)) / (rewards.std(-1, keepdim=True) + 1e-4)).view(-1, 1)
        mask = (ids[:, prompt:] != 1).float()
        now = log_probabilities(policy, ids)
        ratio = (now - before).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        kl = (anchor - now).exp() - (anchor - now) - 1
        loss = -((gain - 0.04 * kl) * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()


def denoiser():
    from diffusers import UNet2DModel

    return UNet2DModel(
        sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64, 64),
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"), norm_num_groups=16,
    )


def ddpm_ema(steps):
    """Denoising diffusion with a moving average of the weights."""
    from diffusers import DDPMScheduler
    from diffusers.training_utils import EMAModel

    model, scheduler = denoiser(), DDPMScheduler(num_train_timesteps=1000)
    average = EMAModel(model.parameters(), decay=0.999)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    images = torch.rand(128, 3, 32, 32) * 2 - 1
    for step in range(steps):
        clean = images[torch.randint(0, len(images), (4,))]
        noise, times = torch.randn_like(clean), torch.randint(0, 1000, (4,))
        loss = F.mse_loss(model(scheduler.add_noise(clean, noise, times), times).sample, noise)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.step(model.parameters())


def ddim_sampling(steps):
    """Pictures drawn by a diffusion model: four denoising steps each."""
    from diffusers import DDIMScheduler

    model, scheduler = denoiser().eval(), DDIMScheduler(num_train_timesteps=1000)
    for step in range(steps):
        scheduler.set_timesteps(4)
        with torch.no_grad():
            picture = torch.randn(1, 3, 32, 32)
            for time in scheduler.timesteps:
                picture = scheduler.step(model(picture, time).sample, time, picture, eta=0.3).prev_sample
            (picture / 2 + 0.5).clamp(0, 1).mul(255).round().to(torch.uint8)


def soft_actor_critic(steps):
    """Soft actor-critic: an actor, two critics and their two slow copies, a temperature, a replay buffer."""

    def net(inputs, outputs):
        return nn.Sequential(nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, outputs))

    seen, acts, batch, size = 24, 6, 512, 10_000
    actor, critics = net(seen, 2 * acts), [net(seen + acts, 1), net(seen + acts, 1)]
    slow = [copy.deepcopy(critic).requires_grad_(False) for critic in critics]
    log_alpha = torch.zeros((), requires_grad=True)
    actor_step = torch.optim.Adam(actor.parameters(), 3e-4)
    critic_step = torch.optim.Adam([p for critic in critics for p in critic.parameters()], 3e-4)
    alpha_step = torch.optim.Adam([log_alpha], 3e-4)
    buffer = [torch.randn(size, seen), torch.rand(size, acts) * 2 - 1, torch.randn(size, 1), torch.randn(size, seen), torch.rand(size, 1) < 0.05]

    def act(state):
        mean, spread = actor(state).chunk(2, -1)
        normal = torch.distributions.Normal(mean, spread.clamp(-5, 2).exp())
        raw = normal.rsample()
        action = raw.tanh()
        return action, (normal.log_prob(raw) - (1 - action.pow(2) + 1e-6).log()).sum(-1, keepdim=True)

    for step in range(steps):
        rows = torch.randint(0, size, (batch,))
        state, action, reward, following, ended = (column[rows] for column in buffer)
        with torch.no_grad():
            then, likely = act(following)
            value = torch.min(*(critic(torch.cat([following, then], -1)) for critic in slow)) - log_alpha.exp() * likely
            target = reward + 0.99 * torch.where(ended, torch.zeros_like(value), value)
        loss = sum(F.mse_loss(critic(torch.cat([state, action], -1)), target) for critic in critics)
        critic_step.zero_grad()
        loss.backward()
        critic_step.step()
        drawn, likely = act(state)
        value = torch.min(*(critic(torch.cat([state, drawn], -1)) for critic in critics))
        actor_step.zero_grad()
        (log_alpha.exp().detach() * likely - value).mean().backward()
        actor_step.step()
        alpha_step.zero_grad()
        (-log_alpha * (likely.detach() - acts)).mean().backward()
        alpha_step.step()
        with torch.no_grad():
            for critic, copied in zip(critics, slow):
                for p, q in zip(critic.parameters(), copied.parameters()):
                    q.lerp_(p, 0.005)


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        heads = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class TinyGPT(nn.Module):
    def __init__(self, width=192, layers=3):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def next_word_loss(logits, ids):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def autocast_accumulate(steps):
    """bfloat16 autocast, gradients of four micro-batches added up, fused AdamW."""
    model = TinyGPT()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    for step in range(steps):
        optimizer.zero_grad()
        for _ in range(4):
            ids = torch.randint(2, WORDS, (2, 48))
            with torch.autocast("cpu", torch.bfloat16):
                loss = next_word_loss(model(ids), ids) / 4
            loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()


def mixture_of_experts(steps):
    """A router sends each word to two of eight experts, by the indices that `nonzero` finds."""
    width, experts = 128, 8
    norm, router = nn.LayerNorm(width), nn.Linear(width, experts, bias=False)
    nets = nn.ModuleList(nn.Sequential(nn.Linear(width, 256), nn.SiLU(), nn.Linear(256, width)) for _ in range(experts))
    words, head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
    model = nn.ModuleList([norm, router, nets, words, head])
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(steps):
        ids = torch.randint(2, WORDS, (256,))
        x = words(ids)
        weights, chosen = router(norm(x)).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for number, net in enumerate(nets):
            row, place = (chosen == number).nonzero(as_tuple=True)
            y.index_add_(0, row, net(x[row]) * weights[row, place, None])
        share = torch.bincount(chosen.flatten(), minlength=experts).float() / chosen.numel()
        loss = F.cross_entropy(head(x + y), ids) + 0.01 * experts * (share * share).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def detection(steps):
    """A detector's loss by boolean masks, and boxes that overlap removed."""
    backbone = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 5, 1)
    )
    optimizer = torch.optim.SGD(backbone.parameters(), 0.01, momentum=0.9, nesterov=True)

    def corners(boxes):
        return torch.cat([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], -1)

    def overlap(a, b):
        size = (torch.min(a[:, None, 2:], b[None, :, 2:]) - torch.max(a[:, None, :2], b[None, :, :2])).clamp(min=0).prod(-1)
        areas = [(boxes[:, 2:] - boxes[:, :2]).prod(-1) for boxes in (a, b)]
        return size / (areas[0][:, None] + areas[1][None] - size + 1e-6)

    for step in range(steps):
        images = torch.randn(8, 3, 128, 128)
        result = backbone(images).permute(0, 2, 3, 1).reshape(-1, 5)
        boxes, scores = corners(torch.cat([result[:, :2].sigmoid(), result[:, 2:4].exp().clamp(max=4) * 0.2], -1)), result[:, 4]
        truth = corners(torch.rand(12, 4) * 0.4 + 0.1)
        best, which = overlap(boxes.detach(), truth).max(-1)
        positive = best > 0.3
        loss = F.binary_cross_entropy_with_logits(scores, positive.float())
        if positive.any():
            loss = loss + F.smooth_l1_loss(boxes[positive], truth[which[positive]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            keep, order = [], scores.sigmoid().topk(50).indices
            while len(order) and len(keep) < 5:
                keep.append(int(order[0]))
                order = order[overlap(boxes[order[:1]], boxes[order])[0] < 0.5]


def varied_lengths(steps):
    """Speech with packed sequences: lengths differ between batches, in steps of 20 frames."""
    net = nn.LSTM(40, 128, 1, bidirectional=True, batch_first=True)
    head = nn.Linear(256, 30)
    optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], 1e-3)
    for step in range(steps):
        lengths = (torch.randint(2, 5, (4,)) * 20).sort(descending=True).values
        x = torch.randn(4, int(lengths[0]), 40)
        packed, _ = net(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True))
        y, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        loss = F.ctc_loss(head(y).log_softmax(-1).transpose(0, 1), torch.randint(1, 30, (4, 10)), lengths, torch.full((4,), 10))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()


@torch.library.custom_op("programs::smooth", mutates_args=())
def smooth(x: torch.Tensor, rounds: int) -> torch.Tensor:
    """A filter in NumPy, which PyTorch does not see."""
    values = x.detach().numpy().copy()
    for _ in range(rounds):
        values[1:-1] = (values[:-2] + values[1:-1] + values[2:]) / 3
    return torch.from_numpy(values)


@smooth.register_fake
def _(x, rounds):
    return torch.empty_like(x)


smooth.register_autograd(lambda context, gradient: (gradient, None))


def numpy_operator(steps):
    """A physical simulation with a filter in NumPy, fitted by LBFGS."""
    net = nn.Sequential(nn.Linear(8, 128), nn.Tanh(), nn.Linear(128, 256))
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4, history_size=5, line_search_fn=None)
    x, target = torch.randn(400, 8), torch.randn(400, 256).cumsum(0) / 20

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(smooth(net(x), 60), target)
        loss.backward()
        return loss

    for step in range(steps):
        optimizer.step(closure)


class MaskedScale(torch.autograd.Function):
    """A function with its own backward pass."""

    @staticmethod
    def forward(context, x, scale):
        mask = x > 0
        context.save_for_backward(mask, scale)
        return torch.where(mask, x * scale, x * 0.1)

    @staticmethod
    def backward(context, gradient):
        mask, scale = context.saved_tensors
        return torch.where(mask, gradient * scale, gradient * 0.1), (gradient * mask).sum()


def images_with_workers(steps):
    """Images from a loader with a worker; spectral norm, a custom autograd function, and a scheduled power of a
    rate."""
    layers = [nn.Conv2d(3, 48, 5, 2, 2), nn.BatchNorm2d(48), nn.utils.parametrizations.spectral_norm(nn.Conv2d(48, 96, 3, 2, 1))]
    front, head, scale = nn.Sequential(*layers), nn.Linear(96, 50), nn.Parameter(torch.ones(()))
    parameters = [*front.parameters(), *head.parameters(), scale]
    optimizer = torch.optim.RMSprop(parameters, 1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(320, 3, 80, 80), torch.randint(0, 50, (320,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    step = 0
    while step < steps:
        for x, y in loader:
            features = MaskedScale.apply(front(x), scale).mean((2, 3))
            loss = F.cross_entropy(head(features), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for group in optimizer.param_groups:
                group["lr"] = 1e-3 * (1 - min(step, 900) / 1000) ** 0.9
            step += 1
            if step % 10 == 0:
                loss.item()
            if step == steps:
                break


def compiled(steps):
    """torch.compile of the forward and backward pass."""
    model = torch.compile(TinyGPT(width=128, layers=2))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(steps):
        ids = torch.randint(2, WORDS, (4, 64))
        loss = next_word_loss(model(ids), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def ddp_no_sync(steps):
    """Data parallel; gradients of two micro-batches are added up before they are exchanged."""
    model = nn.parallel.DistributedDataParallel(TinyGPT(width=128, layers=2), bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(steps):
        optimizer.zero_grad()
        for last in (False, True):
            with contextlib.nullcontext() if last else model.no_sync():
                ids = torch.randint(2, WORDS, (2, 48))
                (next_word_loss(model(ids), ids) / 2).backward()
        optimizer.step()


def fsdp2(steps):
    """Sharded weights, used in bfloat16 and reduced in float32."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = TinyGPT(width=128, layers=2)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(steps):
        ids = torch.randint(2, WORDS, (2, 48))
        loss = next_word_loss(model(ids).float(), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def tensor_parallel(steps):
    """DTensor: columns of the first layer, rows of the second, in each of three pairs."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    pairs = [nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(3)]
    model = nn.Sequential(*pairs)
    for pair in pairs:
        parallelize_module(pair, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    torch.manual_seed(1)
    x, y = torch.randn(128, 256), torch.randn(128, 256)
    for step in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def pipeline_1f1b(steps):
    """PyTorch's pipeline, one forward and one backward pass in turn."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    layers = [nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 256)]
    model = nn.Sequential(*layers)
    stage = PipelineStage(model, rank, ranks, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=F.mse_loss)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    x, y = torch.randn(256, 256), torch.randn(256, 256)
    for step in range(steps):
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=y)
        optimizer.step()


PROGRAMS = {
    program.__name__: program
    for program in (
        hf_trainer, lightning_bf16, lora, serving, grpo, ddpm_ema, ddim_sampling, soft_actor_critic, autocast_accumulate,
        mixture_of_experts, detection, varied_lengths, numpy_operator, images_with_workers, compiled, ddp_no_sync, fsdp2,
        tensor_parallel, pipeline_1f1b,
    )
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PROGRAMS, nargs="?")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    if args.list or args.name is None:
        print("\n".join(PROGRAMS))
        return
    torch.set_num_threads(args.threads)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning").setLevel(logging.ERROR)
    torch.manual_seed(int(os.environ.get("RANK", 0)))
    if args.name in RANKS:
        torch.distributed.init_process_group("gloo")
    PROGRAMS[args.name](args.steps)
    if args.name in RANKS:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
