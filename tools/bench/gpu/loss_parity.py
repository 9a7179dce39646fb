#!/usr/bin/env python3
"""Trains GPT-2 in PyTorch on the batches that our gpt demo takes, from weights that the demo reads: equal losses?

    loss_parity.py --write-tokens /tmp/tokens.bin
    loss_parity.py --data /tmp/tokens.bin --weights /tmp/weights.safetensors --steps 5 --json /tmp/torch.json
    gpt --preset gpt2 --vocab 50304 --batch 16 --micro-batches 1 --lr 3e-4 --lr-schedule constant --dtype bf16 \\
        --device cuda --steps 5 --data /tmp/tokens.bin --init /tmp/weights.safetensors --report /tmp/ours.json

tools/gpu_check does all three. The weights are random numbers that bf16 holds, in F32, so that both programs have the
same masters. Windows of a batch begin where framework/io/token_dataset.h says, a function of the seed (Philox4x32-10).
Where it cannot run it prints SKIPPED with the reason, exit code 0. --device cpu, with --dtype f32, is to try it.
"""

import argparse
import array
import contextlib
import json
import random
import struct
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from torch_gpu_peer import MasterWeights, add_size_flags, at_least_one, attention_kernel, why_not  # noqa: E402

SEED = 1  # the demo's default, as is the fraction
VALIDATION_FRACTION = 0.1
NUM_TOKENS = 1 << 19
SKEW = 4  # more of the low tokens, so that there is something to learn in the first steps
WORD = (1 << 32) - 1
LONG = (1 << 64) - 1


# ---- the demo's batches


def philox(counter: Tuple[int, int, int, int], key: Tuple[int, int]) -> Tuple[int, int, int, int]:
    """Ten rounds of Philox4x32; see framework/base/random.h."""
    for _ in range(10):
        product0, product1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = (product1 >> 32 ^ counter[1] ^ key[0], product1 & WORD,
                   product0 >> 32 ^ counter[3] ^ key[1], product0 & WORD)
        key = (key[0] + 0x9E3779B9 & WORD, key[1] + 0xBB67AE85 & WORD)
    return counter


def random_bits(key: Tuple[int, int], index: int) -> Tuple[int, int]:
    """Block `index` of the stream of (seed, stream), as two numbers of 64 bits."""
    seed, stream = key
    words = philox((index & WORD, index >> 32, stream & WORD, stream >> 32), (seed & WORD, seed >> 32))
    return words[0] | words[1] << 32, words[2] | words[3] << 32


def fold_in(key: Tuple[int, int], name: str) -> Tuple[int, int]:
    hashed = 0xCBF29CE484222325  # FNV-1a
    for byte in name.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 & LONG
    return random_bits((key[0] ^ 0x6A09E667F3BCC908, key[1]), hashed)


def window_starts(step: int, batch: int, context: int, num_tokens: int) -> List[int]:
    """In the training part, for a step of one micro-batch; the first step is 0."""
    positions = num_tokens - int(num_tokens * VALIDATION_FRACTION) - context
    key = fold_in((SEED, 0), "token positions")
    return [random_bits(key, step * batch + row)[0] * positions >> 64 for row in range(batch)]


# ---- files


def write_tokens(path: Path, vocabulary: int) -> Path:
    """Random tokens, u16 little-endian, the low ones more often."""
    draw = random.Random(1)
    tokens = array.array("H", (int(vocabulary * draw.random() ** SKEW) for _ in range(NUM_TOKENS)))
    path.write_bytes(little_endian(tokens).tobytes())
    return path


def read_tokens(path: Path) -> "array.array[int]":
    tokens = array.array("H", path.read_bytes())
    return little_endian(tokens)


def little_endian(tokens: "array.array[int]") -> "array.array[int]":
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens


def write_safetensors(path: Path, tensors: Dict[str, Tuple[List[int], bytes]]) -> None:
    """Tensors in F32, by name: their shape and bytes."""
    header: Dict[str, Any] = {}
    end = 0
    for name, (shape, content) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + len(content)]}
        end += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, content in tensors.values():
            file.write(content)


# ---- PyTorch's half


def make_model(args: argparse.Namespace) -> Any:
    """In f32, with values that bf16 holds."""
    import torch
    from torch_models import Attention, FusedAttention, Gpt

    torch.manual_seed(args.seed)
    attention = FusedAttention if args.device == "cuda" else Attention
    model = Gpt(args.layers, args.heads, args.embd, args.context, args.vocabulary, attention=attention)
    for param in model.parameters():
        if param.dim() == 2:
            torch.nn.init.normal_(param, std=0.02)
        param.data = param.data.bfloat16().float()
    return model


def train(args: argparse.Namespace) -> List[float]:
    import torch

    model = make_model(args)
    write_safetensors(Path(args.weights), {name: (list(param.shape), param.detach().numpy().tobytes())
                                           for name, param in model.named_parameters()})
    model = model.to(args.device)
    model = model.bfloat16() if args.dtype == "bf16" else model
    params = list(model.parameters())

    def make_optimizer(tensors: List[Any]) -> Any:
        return torch.optim.AdamW(tensors, lr=args.lr, betas=(0.9, 0.99), weight_decay=0.1)

    optimizer = MasterWeights(params, make_optimizer) if args.dtype == "bf16" else make_optimizer(params)
    tokens = read_tokens(Path(args.data))
    losses = []
    with attention_kernel("flash") if args.device == "cuda" else contextlib.nullcontext():
        for step in range(args.steps):
            starts = window_starts(step, args.batch, args.context, len(tokens))
            windows = torch.tensor([tokens[start:start + args.context + 1].tolist() for start in starts])
            windows = windows.to(args.device)
            for param in params:
                param.grad = None
            loss = model(windows[:, :-1].contiguous(), windows[:, 1:].contiguous())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="GPT-2 in PyTorch on the batches of our gpt demo.")
    add_size_flags(parser)
    parser.add_argument("--write-tokens", metavar="FILE", help="write tokens for both programs, and nothing else")
    parser.add_argument("--data", metavar="FILE", help="tokens, u16")
    parser.add_argument("--weights", metavar="FILE", help="to be written: first values, for the demo's --init")
    parser.add_argument("--json", metavar="FILE", help="to be written: the losses")
    parser.add_argument("--steps", type=at_least_one, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the weights")
    parser.add_argument("--dtype", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    args = parser.parse_args(arguments)
    if args.write_tokens is None and None in (args.data, args.weights, args.json):
        parser.error("expected --data, --weights and --json, or --write-tokens")
    return args


def default_sizes() -> argparse.Namespace:
    """The sizes of GPT-2 124M."""
    parser = argparse.ArgumentParser()
    add_size_flags(parser)
    return parser.parse_args([])


def main() -> int:
    args = parse_arguments()
    if args.write_tokens is not None:
        write_tokens(Path(args.write_tokens), args.vocabulary)
        return 0
    reason = why_not() if args.device == "cuda" else None
    if reason is not None:
        print(f"SKIPPED: {reason}")
        return 0
    losses = train(args)
    print(" ".join(f"{loss:.6f}" for loss in losses))
    Path(args.json).write_text(json.dumps({"losses": losses}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
