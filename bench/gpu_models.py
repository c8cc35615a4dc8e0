"""Steps of training and inference on a CUDA device: `make(name)`; a file for `--models` of bench/workloads.py.

The models are those of bench/workloads.py and of `transformers`, with random weights, at sizes that keep a large GPU
busy. In two of them (`small_ops`, `llama_inference`) the host determines the time. Data is made on the device.
"""

import torch
import torch.nn.functional as F
from torch import nn

import models
import workloads
from workloads import training_step

WORDS = 32000


def autocast(loss):
    """Returns the loss, computed in bfloat16 where autocast uses it."""

    def computed():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return loss()

    return computed


def gpt2():
    """GPT-2's small size: 12 layers, 12 heads, 1024 words, in autocast with a fused optimizer."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=1024))
    x = torch.randint(2, WORDS, (8, 1024))
    return model, autocast(lambda: model(x, labels=x).loss), torch.optim.AdamW(model.parameters(), 1e-4, fused=True)


def llama_model(width=1024, layers=8):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=WORDS, hidden_size=width, intermediate_size=width * 11 // 4, num_hidden_layers=layers,
            num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=1024,
        )
    )


def llama():
    model = llama_model().bfloat16()
    x = torch.randint(2, WORDS, (8, 512))
    return model, lambda: model(x, labels=x).loss, torch.optim.AdamW(model.parameters(), 1e-4)


def resnet18():
    """Channels last, in autocast, with the optimizer's loops over tensors."""
    model = workloads.resnet18().to(memory_format=torch.channels_last)
    x = torch.randn(256, 3, 224, 224).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (256,))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    return model, autocast(lambda: F.cross_entropy(model(x), y)), optimizer


def dlrm():
    batch, bag, rows = 16384, 20, 2_000_000
    model = workloads.Recommender(rows=rows)
    x, y = torch.randn(batch, 13), torch.rand(batch, 1)
    generator = torch.Generator("cuda").manual_seed(1)
    indices = [workloads.zipf_like(rows, batch * bag, generator) for _ in range(8)]
    offsets = [torch.arange(0, batch * bag, bag) for _ in range(8)]
    loss = lambda: F.binary_cross_entropy_with_logits(model(x, indices, offsets), y)
    return model, loss, torch.optim.SGD(model.parameters(), 0.01)


def lstm():
    model = workloads.LanguageModel(words=10000, width=1024)
    x = torch.randint(0, 10000, (128, 64))
    return model, lambda: F.cross_entropy(model(x).flatten(0, 1), x.flatten()), torch.optim.Adam(model.parameters(), 1e-3)


def small_ops():
    model, loss = models.small_ops()
    return model, loss, torch.optim.SGD(model.parameters(), 0.01)


def scaled():
    """Half precision with a scaler, which reads a flag back in each step. Gradients are clipped."""
    model = workloads.Encoder(words=8000, width=768, layers=8, heads=12, length=256)
    x = torch.randint(0, 8000, (32, 256))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    scaler = torch.amp.GradScaler("cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, 1), x.flatten())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    return model, step, None


def prefetch():
    """Batches come from pinned memory on a separate stream, one step ahead. The loss is read in each step."""
    model = workloads.resnet18(100)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    batches = [torch.randn(128, 3, 128, 128, device="cpu").pin_memory() for _ in range(4)]
    y = torch.randint(0, 100, (128,))
    copies = torch.cuda.Stream()
    state = {"number": 0, "next": None}

    def fetch():
        with torch.cuda.stream(copies):
            state["next"] = batches[state["number"] % 4].to("cuda", non_blocking=True)
        state["number"] += 1

    def step():
        if state["next"] is None:
            fetch()
        torch.cuda.current_stream().wait_stream(copies)
        x = state["next"]
        x.record_stream(torch.cuda.current_stream())
        fetch()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return model, step, None


def graph():
    """Forward and backward pass as one CUDA graph."""
    model = workloads.mlp(1024, 4096, 4096, 4096, 1024)
    x, y = torch.randn(512, 1024), torch.randn(512, 1024)
    whole = torch.cuda.make_graphed_callables(model, (x,))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    return model, lambda: F.mse_loss(whole(x), y), optimizer


def compiled():
    model = workloads.Encoder(words=8000, width=512, layers=4, heads=8, length=256)
    x = torch.randint(0, 8000, (32, 256))
    whole = torch.compile(model)
    loss = autocast(lambda: F.cross_entropy(whole(x).flatten(0, 1), x.flatten()))
    return model, loss, torch.optim.AdamW(model.parameters(), 1e-4, fused=True)


def llama_inference():
    """Text generation in bfloat16."""
    model = llama_model().bfloat16().eval()
    return model, models.writes_words(model, torch.randint(2, WORDS, (4, 256))), None


TRAINING = {
    "gpt2": gpt2, "llama": llama, "resnet18": resnet18, "dlrm": dlrm, "lstm": lstm, "small_ops": small_ops,
    "scaled": scaled, "prefetch": prefetch, "graph": graph, "compiled": compiled, "llama_inference": llama_inference,
}
NAMES = list(TRAINING)


def make(name, wrap=None, seed=0):
    """Returns (a function that runs one step, the model)."""
    torch.manual_seed(seed)
    assert wrap is None, f"{name} runs with one rank"
    with torch.device("cuda"):
        model, loss, optimizer = TRAINING[name]()
    return (loss if optimizer is None else training_step(optimizer, loss)), model
