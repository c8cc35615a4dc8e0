#!/usr/bin/env python3
"""Trains a small model of `transformers` with chosen sizes, for bench/whatif_models."""

import argparse
import os

import torch

NAMES = ("gpt2", "gpt2_eager", "distilbert", "t5", "bert", "llama")
WORDS, HEADS, LAYERS, FFN = 300, 4, 4, 176
SIZES = {"batch": 2, "length": 32, "width": 64, "steps": 7}


def make(name, width):
    """Returns a model, which has the loss among its results."""
    import transformers

    if name.startswith("gpt2"):
        attention = {"attn_implementation": "eager"} if name == "gpt2_eager" else {}
        sizes = {"n_positions": 64, "n_embd": width, "n_layer": LAYERS, "n_head": HEADS, "n_inner": FFN}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=WORDS, **sizes, **attention))
    if name == "distilbert":
        sizes = {"dim": width, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": FFN, "max_position_embeddings": 64}
        return transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig(vocab_size=WORDS, **sizes))
    if name == "t5":
        sizes = {"d_model": width, "d_kv": 16, "d_ff": FFN, "num_layers": LAYERS, "num_decoder_layers": 3, "num_heads": HEADS}
        return transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=WORDS, decoder_start_token_id=0, **sizes))
    sizes = {
        "hidden_size": width, "intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "max_position_embeddings": 64,
    }  # fmt: skip
    if name == "bert":
        return transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=WORDS, **sizes))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=WORDS, num_key_value_heads=2, **sizes))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=NAMES)
    parser.add_argument("sizes", nargs="*", metavar="NAME=NUMBER", help=f"of {', '.join(SIZES)}")
    options = parser.parse_args()
    name = options.model
    sizes = SIZES | {key: int(number) for key, number in (word.split("=") for word in options.sizes)}
    torch.manual_seed(0)
    torch.set_num_threads(1)
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    model = make(name, sizes["width"]).train()
    tokens = torch.randint(WORDS, (sizes["batch"], sizes["length"]))
    labels = torch.randint(2, (sizes["batch"],)) if name == "distilbert" else tokens
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(sizes["steps"]):
        optimizer.zero_grad()
        model(input_ids=tokens, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


if __name__ == "__main__":
    main()
