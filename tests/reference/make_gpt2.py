#!/usr/bin/python3
"""Makes gpt2.safetensors and gpt2.json: a tiny GPT-2 as Hugging Face stores it, and what it computes.

Run, on Debian 12 with python3-torch (1.13.1):

    /usr/bin/python3 tests/reference/make_gpt2.py                 # rewrites the files here
    /usr/bin/python3 tests/reference/make_gpt2.py --output /tmp/x # or puts them elsewhere

The forward pass is written out below by the definition of Hugging Face's GPT2LMHeadModel: pre-LN blocks, Conv1D
weights (in, out), tanh GELU, epsilon 1e-5, the head tied to the token embedding. It shares nothing with our models
but the writer of the file.

  gpt2.safetensors  the parameters, F32, names without a prefix, no buffers, no lm_head.weight
  gpt2.json         {"made_with", "config": {as config.json has it}, "tokens": (B, T),
                     "logits": (B, T, V) flat, computed in float64}
"""

import argparse
import json
import math
from pathlib import Path
from typing import Dict

import torch
from torch import Tensor

from make_reference import nine_digits, save_safetensors

LAYERS, HEADS, CHANNELS, CONTEXT, VOCABULARY, BATCH = 2, 4, 16, 8, 37, 2
EPSILON = 1e-5
Tensors = Dict[str, Tensor]


def make_weights() -> Tensors:
    """Every tensor far from idle: no zero bias, no norm weight of one."""
    c = CHANNELS
    shapes = {"wte.weight": (VOCABULARY, c), "wpe.weight": (CONTEXT, c), "ln_f.weight": (c,), "ln_f.bias": (c,)}
    for layer in range(LAYERS):
        h = f"h.{layer}."
        for norm in ("ln_1", "ln_2"):
            shapes.update({f"{h}{norm}.weight": (c,), f"{h}{norm}.bias": (c,)})
        for conv, inputs, outputs in (("attn.c_attn", c, 3 * c), ("attn.c_proj", c, c),
                                      ("mlp.c_fc", c, 4 * c), ("mlp.c_proj", 4 * c, c)):
            shapes.update({f"{h}{conv}.weight": (inputs, outputs), f"{h}{conv}.bias": (outputs,)})
    weights = {name: 0.3 * torch.randn(shape) for name, shape in shapes.items()}
    for name in weights:
        if "ln_" in name and name.endswith("weight"):
            weights[name] += 1.0
    return weights


def layer_norm(x: Tensor, w: Tensors, name: str) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / (variance + EPSILON).sqrt() * w[name + ".weight"] + w[name + ".bias"]


def conv1d(x: Tensor, w: Tensors, name: str) -> Tensor:
    return x @ w[name + ".weight"] + w[name + ".bias"]


def gelu_new(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3)))


def attention(x: Tensor, w: Tensors, name: str) -> Tensor:
    batch, time, channels = x.shape
    query, key, value = (part.view(batch, time, HEADS, channels // HEADS).transpose(1, 2)
                         for part in conv1d(x, w, name + ".c_attn").split(channels, dim=2))
    scores = query @ key.transpose(2, 3) / math.sqrt(channels // HEADS)
    scores = scores.masked_fill(torch.ones(time, time, dtype=torch.bool).triu(1), float("-inf"))
    mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, time, channels)
    return conv1d(mixed, w, name + ".c_proj")


def forward(tokens: Tensor, w: Tensors) -> Tensor:
    """tokens (B, T) -> logits (B, T, V)"""
    x = w["wte.weight"][tokens] + w["wpe.weight"][: tokens.shape[1]]
    for layer in range(LAYERS):
        h = f"h.{layer}."
        x = x + attention(layer_norm(x, w, h + "ln_1"), w, h + "attn")
        hidden = gelu_new(conv1d(layer_norm(x, w, h + "ln_2"), w, h + "mlp.c_fc"))
        x = x + conv1d(hidden, w, h + "mlp.c_proj")
    return layer_norm(x, w, "ln_f") @ w["wte.weight"].T


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the files of a tiny GPT-2 in Hugging Face's names.")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="folder to write to")
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(4)
    torch.set_num_threads(1)
    weights = make_weights()
    tokens = torch.randint(VOCABULARY, (BATCH, CONTEXT))
    logits = forward(tokens, {name: value.double() for name, value in weights.items()})
    single = forward(tokens, weights)
    config = {"model_type": "gpt2", "n_layer": LAYERS, "n_head": HEADS, "n_embd": CHANNELS, "n_positions": CONTEXT,
              "vocab_size": VOCABULARY, "activation_function": "gelu_new", "layer_norm_epsilon": EPSILON}
    save_safetensors(output / "gpt2.safetensors", weights)
    written = {"made_with": f"torch {torch.__version__}", "config": config, "tokens": tokens.tolist(),
               "logits": [nine_digits(value) for value in logits.flatten().tolist()]}
    (output / "gpt2.json").write_text(json.dumps(written) + "\n")
    print(f"logits from {logits.min():.3f} to {logits.max():.3f}, float32 differs by at most "
          f"{(single - logits).abs().max():.1e}")


if __name__ == "__main__":
    main()
