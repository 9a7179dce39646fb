#!/usr/bin/env python3
"""Trains GPT-2 in bf16 on one GPU in PyTorch: what compare_with_torch_gpu.py measures our gpt demo against.

    torch_gpu_peer.py --compile default --json /tmp/peer.json
    torch_gpu_peer.py --ceilings                                     # peak of bf16 products, bandwidth of a copy
    torch_gpu_peer.py --probe                                        # can it run here?

The model is that of models/gpt: pre-LN, learned positions, tanh GELU, head tied to the embedding, no dropout.
Attention is scaled_dot_product_attention, the optimizer AdamW(fused=True), gradients are set to none.

--precision master    what ours does: parameters, gradients and activations in bf16, an f32 master that AdamW updates;
                      gradients are widened and parameters rounded in one multi-tensor copy each. It moves the fewest
                      bytes: the residual stream is bf16, and no weight is cast in forward.
--precision autocast  parameters and gradients in f32, torch.autocast casts each weight once per step. What most
                      people write.

The loss is taken in f32 in both, as ours is. Which one is faster depends on the GPU and on --compile, so the
comparison runs both and holds us against the faster.

Steps are timed by events on the GPU and nothing waits for it between steps; --warmup steps, in which PyTorch
compiles, are left out. Where it cannot run it prints SKIPPED with the reason, exit code 0.
"""

import argparse
import contextlib
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

COMPILE_MODES = ["none", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
SDPA_KERNELS = ["flash", "cudnn", "auto"]
OLDEST_TORCH = (2, 3)  # torch.nn.attention.sdpa_kernel
NUM_BATCHES = 4  # made before the clock starts, then used in turn
CEILING_ROUNDS = 20


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {number}, expected at least 1")
    return number


def add_size_flags(parser: argparse.ArgumentParser) -> None:
    """The sizes of GPT-2 124M; the comparison has the same flags."""
    for flag, default, text in [("--layers", 12, "transformer blocks"), ("--heads", 12, "attention heads"),
                                ("--embd", 768, "channels"), ("--context", 1024, "tokens per sample"),
                                ("--vocabulary", 50304, "50257 tokens, padded to a multiple of 64"),
                                ("--batch", 16, "samples per step")]:
        parser.add_argument(flag, type=at_least_one, default=default, help=f"{text} (default {default})")
    parser.add_argument("--lr", type=float, default=3e-4)


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="GPT-2 in bf16 on one GPU in PyTorch.")
    parser.add_argument("--probe", action="store_true", help="print as JSON what is here, or why it cannot run")
    parser.add_argument("--ceilings", action="store_true", help="measure the GPU's ceilings instead of training")
    add_size_flags(parser)
    parser.add_argument("--precision", choices=["master", "autocast"], default="master")
    parser.add_argument("--compile", choices=COMPILE_MODES, default="none", help="mode of torch.compile")
    parser.add_argument("--sdpa", choices=SDPA_KERNELS, default="flash", help="PyTorch's attention kernel")
    parser.add_argument("--steps", type=at_least_one, default=20, help="measured steps")
    parser.add_argument("--warmup", type=at_least_one, default=10, help="steps before the clock starts")
    parser.add_argument("--product-size", type=at_least_one, default=8192,
                        help="rows and columns of the matrices that show the peak")
    parser.add_argument("--copy-mb", type=at_least_one, default=1024, help="of the copy that shows the bandwidth")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="also write the result here")
    return parser.parse_args(arguments)


def why_not() -> Optional[str]:
    """Why this cannot run here, or None."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return f"{sys.executable} cannot import torch ({error})"
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no GPU that it can use (no device, or no driver for it)"
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST_TORCH:
        return f"PyTorch is {torch.__version__}, expected {'.'.join(map(str, OLDEST_TORCH))} or newer"
    if torch.cuda.get_device_capability() < (8, 0):
        return f"{torch.cuda.get_device_name()} has no bf16; expected compute capability 8.0 or more"
    return None


def probe() -> Dict[str, Any]:
    reason = why_not()
    if reason is not None:
        return {"reason": reason}
    import torch

    return {"reason": None, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
            "cuda": torch.version.cuda}


# ---- training


class MasterWeights:
    """AdamW on an f32 copy of bf16 parameters."""

    def __init__(self, params: List[Any], make_optimizer: Callable[[List[Any]], Any]) -> None:
        import torch

        self._params = params
        self._masters = [param.detach().float() for param in params]
        for master in self._masters:
            master.grad = torch.empty_like(master)
        self._optimizer = make_optimizer(self._masters)

    def step(self) -> None:
        import torch

        with torch.no_grad():
            torch._foreach_copy_([master.grad for master in self._masters], [param.grad for param in self._params])
            self._optimizer.step()
            torch._foreach_copy_(self._params, self._masters)


def make_model(args: argparse.Namespace) -> Any:
    import torch

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from torch_models import FusedAttention, Gpt

    torch.manual_seed(args.seed)
    with torch.device("cuda"):
        model = Gpt(args.layers, args.heads, args.embd, args.context, args.vocabulary, attention=FusedAttention)
        for param in model.parameters():
            if param.dim() == 2:
                torch.nn.init.normal_(param, std=0.02)
    return model.bfloat16() if args.precision == "master" else model


def make_batches(args: argparse.Namespace) -> List[Any]:
    import torch

    tokens = torch.randint(args.vocabulary, (NUM_BATCHES, args.batch, args.context + 1), device="cuda")
    return [(t[:, :-1].contiguous(), t[:, 1:].contiguous()) for t in tokens]


def attention_kernel(name: str) -> Any:
    """So that PyTorch takes this one or fails, instead of taking a slower one."""
    if name == "auto":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel({"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[name])


def train(args: argparse.Namespace) -> Dict[str, Any]:
    import torch

    model, batches = make_model(args), make_batches(args)
    params = list(model.parameters())

    def make_optimizer(tensors: List[Any]) -> Any:
        return torch.optim.AdamW(tensors, lr=args.lr, betas=(0.9, 0.99), weight_decay=0.1, fused=True)

    optimizer = MasterWeights(params, make_optimizer) if args.precision == "master" else make_optimizer(params)
    forward = model if args.compile == "none" else torch.compile(model, mode=args.compile)
    autocast = torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.precision == "autocast")

    def step(number: int) -> Any:
        for param in params:
            param.grad = None
        with autocast:
            loss = forward(*batches[number % NUM_BATCHES])
        loss.backward()
        optimizer.step()
        return loss.detach().clone()  # a replayed CUDA graph writes the next loss into the same memory

    with attention_kernel(args.sdpa):
        first_loss = step(0)
        for number in range(1, args.warmup):
            step(number)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(args.steps + 1)]
        events[0].record()
        for number in range(args.steps):
            last_loss = step(args.warmup + number)
            events[number + 1].record()
        torch.cuda.synchronize()
    losses = [first_loss.item(), last_loss.item()]
    if not all(map(math.isfinite, losses)):
        raise SystemExit(f"torch_gpu_peer: the losses of the first and the last step are {losses}")
    ms = [start.elapsed_time(end) for start, end in zip(events, events[1:])]
    median = statistics.median(ms)
    return {
        "config": {key: value for key, value in vars(args).items() if key not in ("json", "probe", "ceilings")},
        "num_parameters": sum(param.numel() for param in params),
        "losses": losses,
        "step_ms": ms,
        "memory": {"device_peak": torch.cuda.max_memory_allocated()},
        "speed": {"ms_per_step_median": median, "tokens_per_s": 1000 / median * args.batch * args.context},
    }


# ---- ceilings


def median_seconds(work: Callable[[], Any]) -> float:
    import torch

    for _ in range(5):
        work()
    seconds = []
    for _ in range(CEILING_ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1000)
    return statistics.median(seconds)


def measure_ceilings(args: argparse.Namespace) -> Dict[str, float]:
    """The peak of bf16 matrix products, and the memory bandwidth: a copy reads and writes each byte."""
    import torch

    shape = (args.product_size, args.product_size)
    a, b = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = torch.empty_like(a)
    product_s = median_seconds(lambda: torch.matmul(a, b, out=product))
    source = torch.ones(args.copy_mb << 20, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    copy_s = median_seconds(lambda: target.copy_(source))
    return {"flops_per_s": 2 * args.product_size**3 / product_s, "bytes_per_s": 2 * source.numel() / copy_s}


def main() -> int:
    args = parse_arguments()
    if args.probe:
        print(json.dumps(probe()))
        return 0
    reason = why_not()
    if reason is not None:
        print(f"SKIPPED: {reason}")
        return 0
    result: Dict[str, Any]
    if args.ceilings:
        result = {"ceilings": measure_ceilings(args)}
        print(f"{result['ceilings']['flops_per_s'] / 1e12:.1f} TFLOP/s of bf16 products, "
              f"{result['ceilings']['bytes_per_s'] / 1e9:.0f} GB/s")
    else:
        result = train(args)
        speed = result["speed"]
        print(f"torch {args.precision}, compile {args.compile}: {speed['ms_per_step_median']:.2f} ms per step, "
              f"{speed['tokens_per_s']:.0f} tokens/s, {result['memory']['device_peak'] / 1e6:.0f} MB, "
              f"loss {result['losses'][0]:.4f} to {result['losses'][1]:.4f}")
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
