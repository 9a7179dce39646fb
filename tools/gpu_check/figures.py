"""Figures of a run beside the expected ones: GPT-2 124M, batch 32, one H100 80GB HBM3.

Expected ones were measured on such a GPU at its limit of 700 W, unless they are said to be estimates. Look first at
figures that are off by a factor of two.
"""

import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from machine import ROOT
from results import Facts, Results

sys.path.insert(0, str(ROOT / "tools/bench"))
import estimate_gpu_step  # noqa: E402

FAR = 2.0  # a factor, in either direction


@dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    expected: float
    measured: Optional[float]

    def ratio(self) -> Optional[float]:
        return self.measured / self.expected if self.measured is not None and self.expected > 0 else None

    def mark(self) -> str:
        """Empty if the figure is near. For a figure that is no time, more is better."""
        ratio = self.ratio()
        if ratio is None or 1 / FAR <= ratio <= FAR:
            return ""
        return "**slow**" if (ratio > 1) == (self.unit == "ms") else "**fast**"


# Times of one call of a kernel at batch 32, in ms, by the current code: to be changed with it.
KERNELS_MS = {"attention": 0.184, "attention_grad": 0.589, "layer_norm_grad": 0.103, "linear_gelu expand": 0.327,
              "linear_grad_weight expand": 0.234, "linear head": 3.92, "linear_grad_input head": 3.46,
              "linear_grad_weight head": 3.42, "softmax_cross_entropy_with_grad": 2.43}
KERNELS_OF_STEP_MS = 57.5  # by cuBLASLt's first proposals, as cuda_kernel_bench has them
# Times of a training step: check, name of the contender in compare_with_torch_gpu.py, ms. Estimates: those that are
# tuned, as the others are without, and PyTorch's with cuDNN.
STEPS_MS = [("torch.flash", "ours stage 0", 60.5), ("torch.flash", "ours stage 0, graph", 60.4),
            ("torch.flash", "ours stage 0, tuned", 60.5), ("torch.flash", "ours stage 0, graph, tuned", 60.4),
            ("torch.flash", "torch compile default, master", 66.4),
            ("torch.cudnn", "torch compile default, master", 63.5)]


def figures_of(results: Results) -> List[Figure]:
    """All figures, including those that were not measured."""
    bench = results.facts("kernel_bench")
    work = bench.get("measured") or {}
    kernels = {kernel["name"]: kernel for kernel in work.get("kernels", [])}
    ceilings = work.get("ceilings", {})
    figures = [Figure("ceiling of products", "TFLOP/s", 702, scaled(ceilings.get("flops_per_s"), 1e-12)),
               Figure("ceiling of a copy", "TB/s", 2.97, scaled(ceilings.get("bytes_per_s"), 1e-12)),
               Figure("kernels of a step", "ms", KERNELS_OF_STEP_MS, sum_ms(list(kernels.values())))]
    figures += [Figure(f"kernel {name}", "ms", ms, scaled(kernels.get(name, {}).get("seconds"), 1e3))
                for name, ms in KERNELS_MS.items()]
    unpadded = {kernel["name"]: kernel for kernel in bench.get("unpadded", [])}
    figures.append(Figure("kernel linear head, vocabulary 50257", "ms", 25,
                          scaled(unpadded.get("linear head", {}).get("seconds"), 1e3)))
    for check, name, ms in STEPS_MS:
        rows = {row["name"]: row for row in results.facts(check).get("summary", [])}
        figures.append(Figure(f"step, {name} ({check[6:]})", "ms", ms, rows.get(name, {}).get("ms_per_step_median")))
    ours = [row for row in results.facts("torch.flash").get("summary", []) if row["name"].startswith("ours")]
    best = max((row["mfu"] for row in ours), default=None)
    return [*figures, Figure("MFU of ours, the best", "%", 58, scaled(best, 100))]


def scaled(value: Optional[float], factor: float) -> Optional[float]:
    return None if value is None else value * factor


def sum_ms(kernels: List[Dict[str, Any]]) -> Optional[float]:
    return estimate_gpu_step.measured(kernels) if kernels else None


def class_table(results: Results) -> List[str]:
    """Estimates of a step by class of kernels, beside the measurements; empty if nothing was measured."""
    work: Facts = results.facts("kernel_bench").get("measured") or {}
    return estimate_gpu_step.table(work) if work else []
