#!/usr/bin/python3
"""The PyTorch program our demos are measured against: same models, same work, on CPU ranks over gloo.

Run, on Debian 12 with python3-torch:

    /usr/bin/python3 tools/bench/torch_peer.py --model recipe --mode ddp --ranks 2 --json /tmp/peer.json
    /usr/bin/python3 tools/bench/torch_peer.py --model gpt --mode zero --batch 8 --steps 10
    /tmp/torch/bin/python tools/bench/torch_peer.py --model resnet --compile  # PyTorch 2, as llama and vit need

--mode ddp   DistributedDataParallel and Adam on every rank: the peer of our stage 0
--mode zero  the same with ZeroRedundancyOptimizer: the peer of our stages 1 and up (gradients and parameters
             stay whole here; Debian's PyTorch has no more on a CPU)
--mode fully_shard  FSDP2, layer by layer, which PyTorch 2 has: the peer of our stage 3
--compile    torch.compile of the model

It starts its own ranks, one thread each, on 127.0.0.1; with --rank N --store FILE it is one of them, and the
others are started elsewhere, as in other network namespaces, with the same FILE and GLOO_SOCKET_IFNAME.

Settings are the fastest found: gradients as bucket views, zero_grad(set_to_none), huge pages for malloc (10-20 % on
the recipe); --foreach and other bucket sizes were slower or no faster. The JSON has the keys of our own `--report`
where both have them: speed.ms_per_step_median, speed.tokens_per_s (rows per second where rows are no text),
memory.rss_peak, memory.per_rank_rss_peak.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

RECIPE_DEPTH, RECIPE_WIDTH = 20, 2000
DEFAULT_BATCH = {"recipe": 20, "gpt": 8, "llama": 8, "lstm": 16, "bert": 32, "vit": 64, "resnet": 32}
DEFAULT_LR = {"recipe": 0.01, "gpt": 3e-4, "llama": 1e-3, "lstm": 3e-3, "bert": 1e-3, "vit": 1e-3, "resnet": 0.1}
DEFAULT_CONTEXT = {"gpt": 256, "llama": 256, "lstm": 64, "bert": 128}  # tokens; the other models do not read text
RANK_ENVIRONMENT = {"GLOO_SOCKET_IFNAME": "lo", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
NUM_BATCHES = 4  # made before the clock starts, then used in turn


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PyTorch baseline on CPU ranks.")
    parser.add_argument("--model", choices=list(DEFAULT_BATCH), required=True)
    parser.add_argument("--mode", choices=["ddp", "zero", "fully_shard"], default="ddp")
    parser.add_argument("--compile", action="store_true", help="torch.compile of the model")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32", help="bf16: autocast of the forward pass")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, help=f"per rank; default {DEFAULT_BATCH}")
    parser.add_argument("--steps", type=int, default=10, help="measured steps")
    parser.add_argument("--warmup", type=int, default=3, help="steps before the clock starts")
    parser.add_argument("--lr", type=float, help=f"default {DEFAULT_LR}")
    parser.add_argument("--layers", type=int, default=6, help="of gpt and llama, like the next two")
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--embd", type=int, default=384)
    parser.add_argument("--context", type=int, help=f"of models of text; default {DEFAULT_CONTEXT}")
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--bucket-mb", type=int, default=25, help="DDP's bucket_cap_mb")
    parser.add_argument("--foreach", action="store_true", help="Adam(foreach=True)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="also write the result here")
    parser.add_argument("--rank", type=int, metavar="N", help="be this rank instead of starting all")
    parser.add_argument("--store", metavar="FILE", help="with --rank: where the ranks find each other")
    args = parser.parse_args()
    if (args.rank is None) != (args.store is None):
        parser.error("--rank and --store: got one, expected both or neither")
    args.batch = args.batch or DEFAULT_BATCH[args.model]
    args.lr = DEFAULT_LR[args.model] if args.lr is None else args.lr
    args.context = args.context or DEFAULT_CONTEXT.get(args.model, 0)
    return args


# ---- the parent: starts the ranks, ends them together


def start_ranks(num_ranks: int) -> int:
    """Runs this program once per rank; the exit code of the first that fails, or 0."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the ranks and the folder go too
    environment = {**RANK_ENVIRONMENT, **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="torch_peer.") as folder:
        command = [sys.executable, *sys.argv, "--store", f"{folder}/store", "--rank"]
        ranks = [subprocess.Popen(command + [str(rank)], env=environment) for rank in range(num_ranks)]
        try:
            return wait_for_all(ranks)
        finally:
            for process in ranks:
                process.kill()
                process.wait()


def wait_for_all(ranks: List["subprocess.Popen[bytes]"]) -> int:
    while True:
        codes = [process.poll() for process in ranks]
        for rank, code in enumerate(codes):
            if code:
                reason = f"exit code {code}" if code > 0 else f"killed by {signal.Signals(-code).name}"
                print(f"torch_peer: rank {rank}: {reason}", file=sys.stderr)
                return code if code > 0 else 1
        if all(code == 0 for code in codes):
            return 0
        time.sleep(0.05)


# ---- a rank


def run_rank(args: argparse.Namespace) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{args.store}", rank=args.rank, world_size=args.ranks)
    steps = train(args)
    peaks: List[Any] = [None] * args.ranks
    dist.all_gather_object(peaks, peak_rss_bytes())
    if args.rank == 0:
        report(args, steps, peaks, torch.__version__)
    dist.barrier()
    dist.destroy_process_group()


def train(args: argparse.Namespace) -> List[Dict[str, float]]:
    """Loss, milliseconds and this rank's processor milliseconds (all its threads) of every measured step."""
    import torch

    make = {"recipe": make_recipe, "gpt": make_text_model, "llama": make_text_model, "lstm": make_text_model,
            "bert": make_bert, "vit": make_image_model, "resnet": make_image_model}
    model, batches = make[args.model](args)
    if args.compile:
        model = torch.compile(model)
    model = distribute(args, model)
    optimizer = make_optimizer(args, model)
    steps = []
    for step in range(args.warmup + args.steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = model(*batches[step % NUM_BATCHES])
        loss.backward()
        optimizer.step()
        steps.append({
            "step": step - args.warmup + 1,
            "loss": loss.item(),
            "ms": 1000 * (time.perf_counter() - start),
            "cpu_ms": 1000 * (time.process_time() - cpu_start),
        })
    return steps[args.warmup:]


def distribute(args: argparse.Namespace, model: Any) -> Any:
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    if args.mode != "fully_shard":
        return DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False,
                                       bucket_cap_mb=args.bucket_mb)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (args.ranks,))
    for module in list(model.modules()):
        if isinstance(module, (nn.ModuleList, nn.Sequential)):
            for layer in module:
                fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def make_recipe(args: argparse.Namespace) -> Tuple[Any, List[Any]]:
    import torch
    from torch_models import LinearStack

    torch.manual_seed(args.seed)
    model = LinearStack(RECIPE_DEPTH, RECIPE_WIDTH)
    torch.manual_seed(args.seed + 1 + args.rank)
    shape = (args.batch, RECIPE_WIDTH)
    return model, [(torch.randn(shape), torch.randn(shape)) for _ in range(NUM_BATCHES)]


def make_text_model(args: argparse.Namespace) -> Tuple[Any, List[Any]]:
    import torch
    from torch_models import Gpt, Llama, LstmLanguage

    torch.manual_seed(args.seed)
    if args.model == "gpt":
        model = Gpt(args.layers, args.heads, args.embd, args.context, args.vocabulary)
    elif args.model == "lstm":
        model = LstmLanguage(2, 64, 256, args.vocabulary)
    else:  # models/llama's preset mini has a third of the heads for keys and 8/3 of the channels inside SwiGLU
        model = Llama(args.layers, args.heads, args.heads // 3, args.embd, args.embd * 8 // 3, args.context,
                      args.vocabulary)
    for param in model.parameters():
        if param.dim() == 2:
            torch.nn.init.normal_(param, std=0.02)
    torch.manual_seed(args.seed + 1 + args.rank)
    tokens = torch.randint(args.vocabulary, (NUM_BATCHES, args.batch, args.context + 1))
    return model, [(t[:, :-1].contiguous(), t[:, 1:].contiguous()) for t in tokens]


def make_bert(args: argparse.Namespace) -> Tuple[Any, List[Any]]:
    import torch
    from torch_models import Bert

    torch.manual_seed(args.seed)
    model = Bert(4, 4, 256, args.context, args.vocabulary + 1)  # models/bert's preset mini; the last token is the mask
    for param in model.parameters():
        if param.dim() == 2:
            torch.nn.init.normal_(param, std=0.02)
    torch.manual_seed(args.seed + 1 + args.rank)
    labels = torch.randint(args.vocabulary, (NUM_BATCHES, args.batch, args.context))
    hidden = torch.rand(labels.shape).argsort(dim=2) < round(0.15 * args.context)
    return model, list(zip(labels.masked_fill(hidden, args.vocabulary), labels.masked_fill(~hidden, -100)))


def make_image_model(args: argparse.Namespace) -> Tuple[Any, List[Any]]:
    import torch
    from torch_models import ResNet18, Vit

    torch.manual_seed(args.seed)
    size = 28 if args.model == "vit" else 32
    model = Vit(6, 4, 128, 512, (1, size), 4, 10) if args.model == "vit" else ResNet18(1, 10)
    torch.manual_seed(args.seed + 1 + args.rank)
    shape = (args.batch, 1, size, size)
    return model, [(torch.randn(shape), torch.randint(10, (args.batch,))) for _ in range(NUM_BATCHES)]


def make_optimizer(args: argparse.Namespace, model: Any) -> Any:
    import torch
    from torch.distributed.optim import ZeroRedundancyOptimizer

    options = {"lr": args.lr, "foreach": args.foreach}
    optimizer = torch.optim.Adam if args.model in ("recipe", "gpt") else torch.optim.AdamW
    if args.model == "resnet":
        optimizer = torch.optim.SGD
        options.update(momentum=0.9, weight_decay=5e-4)
    if args.mode == "zero":
        return ZeroRedundancyOptimizer(model.parameters(), optimizer_class=optimizer,
                                       parameters_as_bucket_view=True, **options)
    return optimizer(model.parameters(), **options)


def peak_rss_bytes() -> int:
    """The most memory this process has had resident (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def report(args: argparse.Namespace, steps: List[Dict[str, float]], peaks: List[int], version: str) -> None:
    ms = statistics.median(step["ms"] for step in steps)
    fastest = min(step["ms"] for step in steps)
    cpu_ms = statistics.median(step["cpu_ms"] for step in steps)
    rows = args.ranks * args.batch
    tokens_per_s = 1000 / ms * rows * (args.context if args.model in DEFAULT_CONTEXT else 1)
    unit = "tokens" if args.model in DEFAULT_CONTEXT else "rows"
    config = {key: value for key, value in vars(args).items() if key not in ("json", "rank", "store")}
    result = {
        "model": args.model,
        "config": {**config, "torch": version},
        "steps": steps,
        "memory": {"rss_peak": max(peaks), "per_rank_rss_peak": peaks},
        "speed": {"ms_per_step_median": ms, "ms_per_step_min": fastest, "cpu_ms_per_step_median": cpu_ms,
                  "tokens_per_s": tokens_per_s},
    }
    compiled = " compiled" if args.compile else ""
    print(f"torch {args.model} {args.mode}{compiled} {args.dtype}, {args.ranks} ranks: {ms:.1f} ms per step "
          f"(fastest {fastest:.1f}, processor {cpu_ms:.1f} per rank), {tokens_per_s:.0f} {unit}/s, "
          f"peak memory per rank {max(peaks) / 1e6:.0f} MB, last loss {steps[-1]['loss']:.5g}")
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    arguments = parse_arguments()
    if arguments.rank is None:
        sys.exit(start_ranks(arguments.ranks))
    run_rank(arguments)
