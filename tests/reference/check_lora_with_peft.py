#!/usr/bin/env python3
"""Loads adapters that save_lora wrote with Hugging Face's peft, into torch layers of the same names.

Not a test of the build, for the library is not part of it. Needs an environment with peft and torch:

    python3 -m venv /tmp/peft && /tmp/peft/bin/pip install torch peft
    bazel build //tests/zero:lora_test
    /tmp/peft/bin/python tests/reference/check_lora_with_peft.py bazel-bin/tests/zero/lora_test

The adapted layers must compute W x + alpha / r B A x, and what peft saves must be the same tensors.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import peft
import torch
from safetensors.torch import load_file

CHANNELS, RANK, ALPHA = 12, 2, 6.0  # of the model in lora_test.cc
TOLERANCE = 1e-5


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(CHANNELS, 3 * CHANNELS)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x):
        return torch.stack([block.attention.qkv(x) for block in self.blocks])


def main() -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.abspath(sys.argv[1]), "--gtest_filter=Lora.FilesAreThoseOfPeft"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "TEST_TMPDIR": folder})
        adapters = Path(folder) / "adapters"
        ours = load_file(adapters / "adapter_model.safetensors")
        model, x = Model(), torch.randn(5, CHANNELS)
        expected = model(x).detach()
        for i, result in enumerate(expected):
            layer = f"base_model.model.blocks.{i}.attention.qkv"
            result += ALPHA / RANK * x @ ours[f"{layer}.lora_A.weight"].T @ ours[f"{layer}.lora_B.weight"].T
        adapted = peft.PeftModel.from_pretrained(model, adapters)
        with torch.no_grad():
            difference = (adapted(x) - expected).abs().max().item()
        adapted.save_pretrained(f"{folder}/again")
        again = load_file(f"{folder}/again/adapter_model.safetensors")
    same = again.keys() == ours.keys() and all(torch.equal(again[name], ours[name]) for name in ours)
    print(f"peft {peft.__version__}, torch {torch.__version__}: results differ by at most {difference:.1e}; saved again: "
          f"{'the same tensors' if same else 'other tensors'}")
    sys.exit(0 if same and difference < TOLERANCE else 1)


if __name__ == "__main__":
    main()
