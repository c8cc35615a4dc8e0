"""Training and inference steps of models from other authors, with random weights: `make(name)`.

Requires `transformers`, `diffusers` and scipy in addition to torch (`pip install transformers diffusers scipy`).
Nothing is downloaded. A step takes some 50 to 300 ms on one core. The names of bench/workloads.py can be used as
well. This is a file for its --models and for bench/mystique.
"""

import torch
import torch.nn.functional as F
from torch import nn

import workloads

WORDS = 2000


def tokens(*shape):
    return torch.randint(2, WORDS, shape)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=128, n_embd=256, n_layer=4, n_head=8))
    x = tokens(4, 128)
    return model, lambda: model(x, labels=x).loss


def llama_model():
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=WORDS, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
            num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=128,
        )
    )


def llama():
    model = llama_model()
    x = tokens(4, 128)
    return model, lambda: model(x, labels=x).loss


def bert():
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(
        BertConfig(
            vocab_size=WORDS, hidden_size=256, num_hidden_layers=4, num_attention_heads=8,
            intermediate_size=1024, max_position_embeddings=128,
        )
    )
    x, mask = tokens(8, 64), torch.ones(8, 64)
    mask[:, 48:] = 0
    return model, lambda: model(x, attention_mask=mask, labels=x).loss


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification(
        ViTConfig(
            hidden_size=192, num_hidden_layers=6, num_attention_heads=3, intermediate_size=768,
            image_size=96, patch_size=16, num_labels=100,
        )
    )
    x, y = torch.randn(8, 3, 96, 96), torch.randint(0, 100, (8,))
    return model, lambda: model(x, labels=y).loss


def convnext():
    from transformers import ConvNextConfig, ConvNextForImageClassification

    model = ConvNextForImageClassification(
        ConvNextConfig(hidden_sizes=[48, 96, 192, 384], depths=[2, 2, 4, 2], image_size=96, num_labels=100)
    )
    x, y = torch.randn(4, 3, 96, 96), torch.randint(0, 100, (4,))
    return model, lambda: model(x, labels=y).loss


def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    model = Wav2Vec2ForCTC(
        Wav2Vec2Config(
            vocab_size=32, hidden_size=192, num_hidden_layers=4, num_attention_heads=6, intermediate_size=768,
            conv_dim=(128,) * 7, mask_time_prob=0.0,
        )
    )
    x, y = torch.randn(2, 16000), torch.randint(1, 32, (2, 12))
    return model, lambda: model(x, labels=y).loss


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    model = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=WORDS, d_model=192, encoder_layers=3, decoder_layers=3, encoder_attention_heads=6,
            decoder_attention_heads=6, encoder_ffn_dim=768, decoder_ffn_dim=768, max_source_positions=200,
            num_mel_bins=80, decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=1,
        )
    )
    x, y = torch.randn(2, 80, 400), tokens(2, 32)
    return model, lambda: model(input_features=x, labels=y).loss


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=WORDS, d_model=256, d_kv=32, d_ff=1024, num_layers=3, num_heads=8,
            decoder_start_token_id=0,
        )
    )
    x, y = tokens(4, 64), tokens(4, 32)
    return model, lambda: model(input_ids=x, labels=y).loss


def yolos():
    """Object detection: boxes are matched with targets on the host in each step."""
    from transformers import YolosConfig, YolosForObjectDetection

    model = YolosForObjectDetection(
        YolosConfig(
            hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768,
            image_size=[128, 128], patch_size=16, num_detection_tokens=50, num_labels=20,
            use_mid_position_embeddings=False,
        )
    )
    x = torch.randn(2, 3, 128, 128)
    y = [
        {"class_labels": torch.randint(0, 20, (n,)), "boxes": torch.rand(n, 4) * 0.4 + 0.3}
        for n in (3, 5)
    ]
    return model, lambda: model(pixel_values=x, labels=y).loss


def unet():
    """Denoising diffusion: predicts the noise of images at random times."""
    from diffusers import DDPMScheduler, UNet2DModel

    model = UNet2DModel(
        sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64, 128),
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"), norm_num_groups=16,
    )
    scheduler = DDPMScheduler(num_train_timesteps=1000)
    x = torch.randn(4, 3, 32, 32)

    def loss():
        noise = torch.randn_like(x)
        times = torch.randint(0, 1000, (4,))
        return F.mse_loss(model(scheduler.add_noise(x, noise, times), times).sample, noise)

    return model, loss


class GraphConvolution(nn.Module):
    """Mean of neighbours and own features, mixed: GraphSAGE's layer."""

    def __init__(self, width_in, width_out):
        super().__init__()
        self.own = nn.Linear(width_in, width_out)
        self.others = nn.Linear(width_in, width_out)

    def forward(self, x, source, target, degree):
        total = torch.zeros_like(x).index_add(0, target, x[source])
        return self.own(x) + self.others(total / degree)


def gnn():
    nodes, edges, width = 4000, 40000, 64
    layers = nn.ModuleList(GraphConvolution(width, width) for _ in range(3))
    head = nn.Linear(width, 10)
    model = nn.ModuleList([layers, head])
    generator = torch.Generator().manual_seed(2)
    source = workloads.zipf_like(nodes, edges, generator)
    target = torch.randint(0, nodes, (edges,), generator=generator)
    degree = torch.bincount(target, minlength=nodes).clamp(min=1).unsqueeze(1)
    x, y = torch.randn(nodes, width), torch.randint(0, 10, (nodes,))

    def loss():
        h = x
        for layer in layers:
            h = F.relu(layer(h, source, target, degree))
        return F.cross_entropy(head(h), y)

    return model, loss


def small_ops():
    """An MLP of many small operators: most of the time is in calls, not in arithmetic."""
    model = nn.Sequential(*[layer for _ in range(60) for layer in (nn.Linear(32, 32), nn.LayerNorm(32), nn.GELU())])
    x, y = torch.randn(16, 32), torch.randn(16, 32)
    return model, lambda: F.mse_loss(model(x), y)


def writes_words(model, x):
    """Returns a step that writes eight words after the prompt `x`, with a cache of keys and values."""

    @torch.inference_mode()
    def step():
        cache, words = None, x
        for _ in range(8):
            result = model(words, past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            words = result.logits[:, -1:].argmax(-1)

    return step


def llama_inference():
    model = llama_model().eval()
    return model, writes_words(model, tokens(2, 48))


# Name, maker of the model and its loss, optimizer.
TRAINING = {
    "gpt2": (gpt2, "AdamW"),
    "llama": (llama, "AdamW"),
    "bert": (bert, "AdamW"),
    "vit": (vit, "AdamW"),
    "convnext": (convnext, "AdamW"),
    "wav2vec2": (wav2vec2, "Adam"),
    "whisper": (whisper, "AdamW"),
    "t5": (t5, "Adam"),
    "yolos": (yolos, "AdamW"),
    "unet": (unet, "Adam"),
    "gnn": (gnn, "Adam"),
    "small_ops": (small_ops, "SGD"),
}
INFERENCE = {"llama_inference": llama_inference}
NAMES = [*TRAINING, *INFERENCE, "lstm", "dlrm", "resnet18"]


def make(name, wrap=None, seed=0):
    """Returns (a function that runs one step, the model)."""
    torch.manual_seed(seed)
    if name in INFERENCE:
        model, step = INFERENCE[name]()
        return step, model
    if name not in TRAINING:
        return workloads.make(name, wrap, seed)
    assert wrap is None, f"{name} runs with one rank"
    made, optimizer_name = TRAINING[name]
    model, loss = made()
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=1e-3)
    return workloads.training_step(optimizer, loss), model
