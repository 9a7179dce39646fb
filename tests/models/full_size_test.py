#!/usr/bin/python3
"""The matrix of tests/zero/matrix_test at full size: the recipe (20 layers of 2000) and the GPT "mini".

    bazel test //tests/models:full_size_test                                        # a sample of 15 minutes
    bazel test //tests/models:full_size_test --test_arg=--minutes=0 --test_timeout=40000   # everything

Settings are number type x accumulation x when gradients are reduced; each is run at several stages, numbers of ranks,
and with and without recomputation, two steps each. All runs of a setting must end with the same bits, and every run's
plan must equal its measurement. Settings come in an order drawn from --seed, so a sample is any part of the whole.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

STAGES = (0, 1, 2, 3)
RANKS = (1, 2, 3, 4)
DTYPES = ("f32", "bf16", "f16")
ACCUMULATED = 12  # micro-batches, which 1, 2, 3 and 4 ranks divide


class Setting(NamedTuple):
    """The settings that the bits depend on."""

    model: str
    dtype: str
    micro_batches: int
    reduce_every: str
    ranks: Optional[int]  # None: the bits do not depend on them


class Variant(NamedTuple):
    """The settings that the bits do not depend on."""

    ranks: int
    stage: int
    recompute: bool


def all_settings() -> List[Setting]:
    settings = []
    for model, dtype in itertools.product(("recipe", "gpt"), DTYPES):
        settings += [Setting(model, dtype, n, "micro-batch", None) for n in (*RANKS, ACCUMULATED)]
        settings += [Setting(model, dtype, ACCUMULATED, "step", n) for n in RANKS]
    return settings


def variants_of(setting: Setting) -> List[Variant]:
    ranks = [n for n in RANKS if setting.micro_batches % n == 0] if setting.ranks is None else [setting.ranks]
    return [Variant(*v) for v in itertools.product(ranks, STAGES, (False, True))]


def command(programs: Dict[str, str], setting: Setting, variant: Variant, report: Path) -> List[str]:
    flags = {
        "ranks": variant.ranks,
        "zero": variant.stage,
        "dtype": setting.dtype,
        "micro-batches": setting.micro_batches,
        "reduce-every": setting.reduce_every,
        "steps": 2,
        "report": report,
    }
    if setting.model == "gpt":
        flags.update({"preset": "mini", "batch": 2, "sample-tokens": 0, "eval-windows": 2})
        if variant.recompute:
            flags["recompute"] = "blocks.*"
    else:
        # The recipe's own rate would take the 16-bit types out of their range.
        flags["lr"] = 1e-4
        if variant.recompute:
            flags["recompute"] = "layers.*"
    words = [[f"--{name}", str(value)] for name, value in flags.items()]
    return [programs[setting.model], *itertools.chain.from_iterable(words)]


def run(words: List[str], report: Path) -> Dict[str, Any]:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(report.read_text())


def bits(report: Dict[str, Any]) -> Any:
    losses = [step["loss"] for step in report["steps"]]
    return losses, report["final"]["param_sha256"], report["final"]["optimizer_sha256"]


def check_plan(words: List[str], report: Dict[str, Any]) -> None:
    memory, traffic = report["memory"], report["communication"]
    planned = memory["predicted"] == memory["measured"] and traffic["predicted"] == traffic["measured"]
    if not planned or set(memory["per_rank_peak"]) != {memory["predicted"]["peak"]}:
        sys.exit(f"{' '.join(words)}\nplanned and measured differ:\n{memory}\n{traffic}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("gpt")
    parser.add_argument("--minutes", type=float, default=15, help="begin no setting after this long; 0: run all")
    parser.add_argument("--variants", type=int, default=4, help="runs of a setting when --minutes is not 0")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    programs = {"recipe": str(Path(options.recipe).resolve()), "gpt": str(Path(options.gpt).resolve())}

    draw = random.Random(options.seed)
    settings = all_settings()
    draw.shuffle(settings)
    start = time.monotonic()
    num_runs = num_settings = 0
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        for setting in settings:
            if options.minutes and time.monotonic() - start > 60 * options.minutes:
                break
            variants = variants_of(setting)
            if options.minutes:
                variants = draw.sample(variants, min(options.variants, len(variants)))
            expected = None
            for variant in variants:
                words = command(programs, setting, variant, report)
                result = run(words, report)
                check_plan(words, result)
                expected = expected or bits(result)
                if bits(result) != expected:
                    sys.exit(f"{' '.join(words)}\nother bits: {bits(result)}\nthan {variants[0]}: {expected}")
                num_runs += 1
            num_settings += 1
            print(f"{setting}: {[tuple(variant) for variant in variants]}", flush=True)
    whole = len(all_settings())
    print(f"{num_settings} of {whole} settings, {num_runs} runs: same bits, plans measured")


if __name__ == "__main__":
    main()
