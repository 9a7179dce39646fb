"""GPT-2 124M at its full size: the same bits in every way of running it, and the losses of PyTorch.

Small models do not show this: for long sums cuBLASLt takes other kernels, in which several blocks share a sum.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Dict, List, Tuple

from check_runner import CheckFailed, CheckRun, CheckSkipped, Facts
from demo_checks import Training
from machine import ROOT, program

sys.path.insert(0, str(ROOT / "tools/bench/gpu"))
from compare_with_torch_gpu import sizes  # noqa: E402
from loss_parity import default_sizes, write_tokens  # noqa: E402

BITS_STEPS = 3
PARITY_STEPS = 5
PARITY_TOLERANCE = 2e-3  # relative
WAYS = ["", "--cuda-graph", "--gpu-collectives host --ranks 2 --zero 0", "--gpu-collectives host --ranks 2 --zero 3",
        "--gpu-collectives peer --ranks 2 --zero 0", "--gpu-collectives peer --ranks 2 --zero 3"]

CHOSEN_WAYS = ["", "--cuda-graph", "--gpu-collectives peer --ranks 2 --zero 3"]  # to run with a file of algorithms


def check_bits(run: CheckRun) -> Facts:
    data = write_tokens(run.folder / "tokens.bin", default_sizes().vocabulary)
    flags = f"--steps {BITS_STEPS} --micro-batches 2"
    first, algorithms = train_and_tell(run, data, flags)
    for way in WAYS:
        train(run, data, f"{flags} {way}").expect_same_bits(first)
    return {**first.bits(), "ways": ["twice the same", *WAYS[1:]], "algorithms": algorithms}


def check_gemm_choices(run: CheckRun) -> Facts:
    """Uses the fastest GEMM algorithms: the first run measures them, the others must have its bits."""
    data = write_tokens(run.folder / "tokens.bin", default_sizes().vocabulary)
    choices = run.folder / "gemm_choices.json"
    flags = f"--steps {BITS_STEPS} --micro-batches 2 --gemm-choices {choices}"
    first, algorithms = train_and_tell(run, data, flags)
    measured = choices.read_text()
    for way in CHOSEN_WAYS:
        train(run, data, f"{flags} {way}").expect_same_bits(first)
    if choices.read_text() != measured:
        raise CheckFailed("a run with the same products changed the file of their algorithms")
    return {**first.bits(), "algorithms": algorithms, "microseconds": [
        f"{product}: {choice['us']:.1f}, at first {choice['first_us']:.1f}"
        for products in json.loads(measured)["choices"].values() for product, choice in products.items()]}


def check_loss_parity(run: CheckRun) -> Facts:
    """PyTorch draws the weights; both train on the same batches."""
    data = write_tokens(run.folder / "tokens.bin", default_sizes().vocabulary)
    weights, theirs = run.folder / "weights.safetensors", run.folder / "torch.json"
    script = ROOT / "tools/bench/gpu/loss_parity.py"
    output = run.execute_well([sys.executable, str(script), "--data", str(data), "--steps", str(PARITY_STEPS),
                               "--weights", str(weights), "--json", str(theirs)])
    skipped = re.search(r"^SKIPPED: (.*)", output, re.MULTILINE)
    if skipped is not None:
        raise CheckSkipped(skipped.group(1))
    ours = train(run, data, f"--steps {PARITY_STEPS} --micro-batches 1 --init {weights}").losses
    return compare(ours, json.loads(theirs.read_text())["losses"])


def compare(ours: List[float], theirs: List[float]) -> Facts:
    facts: Dict[str, object] = {"ours": ours, "torch": theirs, "tolerance": PARITY_TOLERANCE}
    if len(ours) != PARITY_STEPS or len(theirs) != PARITY_STEPS or not all(map(is_finite, ours + theirs)):
        raise CheckFailed(f"expected {PARITY_STEPS} finite losses each: ours {ours}, PyTorch's {theirs}")
    largest = max(abs(a / b - 1) for a, b in zip(ours, theirs))
    if largest > PARITY_TOLERANCE:
        raise CheckFailed(f"losses are {largest:.1e} apart, expected at most {PARITY_TOLERANCE:g}: ours {ours}, "
                          f"PyTorch's {theirs}")
    return {"largest_difference": largest, **facts}


def is_finite(loss: object) -> bool:
    return isinstance(loss, float) and math.isfinite(loss)


def train(run: CheckRun, data: Path, flags: str) -> Training:
    """Flags for nothing but training, as far as the demo allows."""
    return training_of(run, data, flags, [])[0]


def train_and_tell(run: CheckRun, data: Path, flags: str) -> Tuple[Training, List[str]]:
    """Also returns the algorithm of cuBLASLt for each product."""
    training, output = training_of(run, data, flags, ["--log-level", "debug"])
    return training, re.findall(r"^debug: product (.*)", output, re.MULTILINE)


def training_of(run: CheckRun, data: Path, flags: str, more: List[str]) -> Tuple[Training, str]:
    """Also returns what it printed."""
    report = run.folder / "report.json"
    output = run.execute_well([*command(data, flags), *more, "--report", str(report)])
    training = Training(flags, json.loads(report.read_text()))
    training.expect_plan_measured()
    return training, output


def command(data: Path, flags: str) -> List[str]:
    model = default_sizes()
    return [program("gpt"), *sizes(model, "--vocab", model.vocabulary), "--data", str(data), "--dtype", "bf16",
            "--device", "cuda", "--lr-schedule", "constant", "--warmup-steps", "0", "--eval-every", "1000",
            "--eval-windows", "1", "--sample-tokens", "0", "--timeout", "100", *flags.split()]
