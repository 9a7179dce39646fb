#!/usr/bin/env python3
"""Estimates a training step of GPT-2 in bf16 on an H200 by arithmetic, one line for each class of kernels.

    bazel run -c opt //tools/bench/gpu:cuda_kernel_bench -- --batch 32 --list --json /tmp/work.json
    tools/bench/estimate_gpu_step.py --work /tmp/work.json

Kernels, their FLOPs and their bytes come from that program, which needs no GPU for it; instructions and shares of the
ceilings from the tables below. With `--list` left out, on a GPU, the file has measured times too, which then stand
beside the estimates; tools/gpu_check does that.

floor    what is longest: FLOPs at the peak, bytes at the bandwidth, warp instructions at one per scheduler and cycle
now      with the instructions and shares of the code as it is
planned  with those of the changes that are under way or decided; what each is stands in the tables

A change that is made moves its second number to the first. [sass]: counted in the machine code of the main loop for
sm_90. Shares marked [est] are judgements, not measurements: the sum is good to about 10 %.
"""

import argparse
import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

FLOPS_PER_S = 790e12  # of bf16 products, as measured on an H200 with random numbers
BYTES_PER_S = 4.3e12  # of a copy within the GPU, likewise
CYCLES_PER_S = 1.755e9  # under load
MULTIPROCESSORS, SCHEDULERS, WARP = 132, 4, 32
TARGET_MS = 58.7  # of a step at batch 32: 1.15 times as fast as torch.compile with FlashAttention-2 [est]
TILE = 64  # rows of queries, and of keys, of an attention kernel's tile

Pair = Tuple[float, float]  # now, planned


@dataclass(frozen=True)
class Work:
    """A class of kernels, and how far they come to the ceilings."""

    name: str
    kernels: str  # names in cuda_kernel_bench, a regular expression
    why: str
    peak_share: Pair = (1.0, 1.0)
    bandwidth_share: Pair = (0.85, 0.85)
    extra_us: Pair = (0.0, 0.0)  # per call
    instructions: Pair = (0.0, 0.0)  # per element of the logits
    first_share: Optional[float] = None  # of the peak, by cuBLASLt's first proposals: without --gemm-choices [est]


@dataclass(frozen=True)
class TileLoop:
    """The main loop of an attention kernel, per tile of 64 x 64 and warp; a block is four warps, one per scheduler."""

    name: str
    kernel: str
    issue_slots: Pair
    product_cycles: float  # of a scheduler's tensor core
    waits: float  # times as long as that: waits for products, barriers and memory, as measured on an H100
    why: str


CLASSES = [
    Work("products, blocks forward", r"linear(_gelu)? (qkv|projection|expand|contract)",
         "K = 768 reaches 500 to 600 TFLOP/s; with --gemm-choices, whose gain is not measured yet [est]",
         peak_share=(0.705, 0.705), first_share=0.69),
    Work("products, blocks input gradient", r"linear_grad_input(_gelu)? (qkv|projection|expand|contract)",
         "likewise; the gradient of GELU reads 201 MB more [est]", peak_share=(0.727, 0.727), first_share=0.712),
    Work("products, blocks weight gradient", r"linear_grad_weight (qkv|projection|expand|contract)",
         "18 to 72 tiles for 132 multiprocessors: split sums; with --gemm-choices [est]",
         peak_share=(0.685, 0.685), first_share=0.624),
    Work("products, head", r"linear(_grad_input|_grad_weight)? head", "with --gemm-choices [est]",
         peak_share=(0.83, 0.83), first_share=0.815),
    Work("cross entropy and gradient", r"softmax_cross_entropy_with_grad", "one reading, through shared memory; "
         "instructions per element [sass], share of the bandwidth [est]",
         bandwidth_share=(0.85, 0.85), instructions=(20.3, 20.3)),
    Work("layer norms", r"layer_norm", "", bandwidth_share=(0.81, 0.85)),
    Work("layer norm gradients", r"layer_norm_grad( last)?", "one reading, with the residual stream's gradient and the "
         "sum that is a bias's", bandwidth_share=(0.85, 0.85), extra_us=(2.7, 2.7)),
    # The sum of expand (0.7 ms of this class) stays a kernel of its own. Per layer in 16 bits, dh has 201 MB: the
    # product with cuBLASLt's DGELU epilogue reads h and writes dh, the sum reads dh, 603 MB in all. A kernel of ours
    # that computes the gradient of GELU and the sums would need a product that writes dy W: 201 MB written, 402 read,
    # 201 written, so 805 MB. The epilogue DGELU_BGRAD (and BGRADA, BGRADB of the weight's gradient) would save 201 MB,
    # but in which order it adds up the rows is not documented, and equal bits are promised. In f32, where there is no
    # such epilogue, a kernel of ours would save 402 MB a layer: 0.1 of more than 20 ms that the layer's products take.
    Work("bias gradients", r"linear_grad_bias .*", "of qkv and expand, whose dy no norm makes: beside the gradient of "
         "GELU, which is in the product's epilogue, a sum would save nothing",
         bandwidth_share=(0.85, 0.85), extra_us=(2.7, 2.7)),
    Work("update", r"adam_update", "near the bandwidth; 28 bytes a parameter, its copy in bf16 among them"),
    Work("embeddings", r"embedding(_grad)?|add positions|sum positions|add tied gradients",
         "lists of positions are short with random tokens", extra_us=(40, 30)),
]
# Measured on an H100, forward: the tensor cores are busy for 34 % of the time, the schedulers for 52 %. Each tile of 64
# queries reads the keys and values that it sees from L2, 855 MB per layer, or 4.8 TB/s: blocks of 128 would read half.
ATTENTION = [
    TileLoop("attention", "attention", (377, 377), 256, 2.03, "[sass] D 64, products of warpgroups, with the mask's path"),
    TileLoop("attention gradient: k, v", "attention_grad", (470, 470), 512, 2.8, "likewise; 168 registers: 3 blocks"),
    TileLoop("attention gradient: q", "attention_grad", (351, 351), 384, 2.8, "likewise"),
]
DOT_PIECE = "attention gradient: dot"
DOT_MS_PER_GB = (0.25, 0.25)  # eight lanes per row of 64 elements, 16-byte loads [est]
# Launches, and what of the wait for a step's end shows where the host waits for the loss alone (--on-non-finite ignore);
# CHECK_MS more with the check of every update. Planned: fewer launches [est].
GAPS_MS = (0.5, 0.4)
CHECK_MS = 0.3
GRAPH_MS = -0.4  # where a step is recorded and replayed, with that check; half of it without [est]
PADDING_MS = 0.1  # of the head's weight and its gradient, with --vocab-multiple


@dataclass
class Row:
    name: str
    flops: float
    moved_bytes: float
    slots: float  # warp instructions
    ms: Pair
    why: str
    measured_ms: Optional[float] = None

    def floor_ms(self) -> float:
        seconds = max(self.flops / FLOPS_PER_S, self.moved_bytes / BYTES_PER_S, seconds_of_slots(self.slots))
        return 1e3 * seconds


def seconds_of_slots(slots: float) -> float:
    return slots / (MULTIPROCESSORS * SCHEDULERS * CYCLES_PER_S)


def by_first_proposals(work: Dict[str, Any]) -> float:
    """The sum of now without --gemm-choices."""
    first = {known.name: known.peak_share[0] / known.first_share for known in CLASSES if known.first_share is not None}
    return sum(row.ms[0] * first.get(row.name, 1.0) for row in rows_of(work))


def rows_of(work: Dict[str, Any]) -> List[Row]:
    """`work` is what cuda_kernel_bench writes."""
    kernels = [kernel for kernel in work["kernels"] if kernel["times_per_step"] > 0]
    rows = []
    for known in CLASSES:
        own = [kernel for kernel in kernels if re.fullmatch(known.kernels, kernel["name"])]
        rows += [class_row(known, own, work["sizes"])] if own else []
    rows += attention_rows(kernels, work["sizes"])
    others = [kernel for kernel in kernels if not is_known(kernel["name"])]
    if others:
        why = "unknown here: " + ", ".join(kernel["name"] for kernel in others)
        rows.append(class_row(Work("others", "", why, peak_share=(0.7, 0.7)), others, work["sizes"]))
    if kernels:
        rows.append(Row("launches and waits", 0, 0, 0, GAPS_MS, "not in cuda_kernel_bench [est]"))
    return rows


def is_known(name: str) -> bool:
    return name in {loop.kernel for loop in ATTENTION} or any(re.fullmatch(known.kernels, name) for known in CLASSES)


def class_row(known: Work, kernels: List[Dict[str, Any]], sizes: Dict[str, int]) -> Row:
    slots = [count * sizes["batch"] * sizes["context"] * sizes["vocabulary"] / WARP for count in known.instructions]
    ms = [class_ms(known, kernels, slots[index], index) for index in (0, 1)]
    return Row(known.name, total(kernels, "flops"), total(kernels, "moved_bytes"), slots[0], (ms[0], ms[1]), known.why,
               measured(kernels))


def class_ms(known: Work, kernels: List[Dict[str, Any]], slots: float, index: int) -> float:
    """Now, or as planned, by the index."""
    seconds = 0.0
    for kernel in kernels:
        products = kernel["flops"] / FLOPS_PER_S / known.peak_share[index] if is_product(kernel) else 0.0
        moved = kernel["moved_bytes"] / BYTES_PER_S / known.bandwidth_share[index]
        seconds += kernel["times_per_step"] * max(products, moved)
    extra_s = sum(kernel["times_per_step"] for kernel in kernels) * known.extra_us[index] / 1e6
    return 1e3 * (max(seconds, seconds_of_slots(slots)) + extra_s)


def is_product(kernel: Dict[str, Any]) -> bool:
    """Those of other kernels are no products of matrices."""
    return str(kernel["op"]).startswith("linear")


def attention_rows(kernels: List[Dict[str, Any]], sizes: Dict[str, int]) -> List[Row]:
    by_name = {kernel["name"]: kernel for kernel in kernels}
    steps = math.ceil(sizes["context"] / TILE)
    tiles = sizes["batch"] * sizes["heads"] * steps * (steps + 1) // 2
    rows = []
    for loop in ATTENTION:
        kernel = by_name.get(loop.kernel)
        if kernel is None:
            continue
        calls = tiles * kernel["times_per_step"]
        ms = [1e3 * cycles_of(loop, slots) * calls / MULTIPROCESSORS / CYCLES_PER_S for slots in loop.issue_slots]
        shares = (kernel["times_per_step"] * kernel[key] for key in ("flops", "moved_bytes"))
        flops, moved = (share if loop.kernel == "attention" else share / 2 for share in shares)
        rows.append(Row(loop.name, flops, moved, SCHEDULERS * loop.issue_slots[0] * calls, (ms[0], ms[1]), loop.why,
                        measured([kernel]) if loop.kernel == "attention" else None))
    if "attention_grad" in by_name:
        kernel = by_name["attention_grad"]
        bytes_ = 2.0 * 2 * kernel["times_per_step"] * sizes["batch"] * sizes["context"] * sizes["channels"]  # y and dy
        rows.append(Row(DOT_PIECE, 0, bytes_, 0, (DOT_MS_PER_GB[0] * bytes_ / 1e9, DOT_MS_PER_GB[1] * bytes_ / 1e9),
                        "[sass]; measured: all three kernels of the gradient", measured([kernel])))
    return rows


def cycles_of(loop: TileLoop, slots: float) -> float:
    return loop.waits * max(slots, loop.product_cycles)


def total(kernels: List[Dict[str, Any]], key: str) -> float:
    return float(sum(kernel["times_per_step"] * kernel[key] for kernel in kernels))


def measured(kernels: List[Dict[str, Any]]) -> Optional[float]:
    return 1e3 * total(kernels, "seconds") if all("seconds" in kernel for kernel in kernels) else None


def sums(rows: List[Row]) -> Tuple[float, float, Optional[float]]:
    """Now, planned, and what was measured with the gaps of now."""
    times = [row.measured_ms for row in rows if row.measured_ms is not None]
    known = sum(times) + GAPS_MS[0] if times else None
    return sum(row.ms[0] for row in rows), sum(row.ms[1] for row in rows), known


# ---- reporting


def table(work: Dict[str, Any]) -> List[str]:
    rows, sizes = rows_of(work), work["sizes"]
    tokens = sizes["batch"] * sizes["context"]
    lines = [f"{sizes['layers']} layers, {sizes['heads']} heads, {sizes['channels']} channels, {sizes['batch']} x "
             f"{sizes['context']} tokens, vocabulary {sizes['vocabulary']}",
             f"ceilings: {FLOPS_PER_S / 1e12:.0f} TFLOP/s, {BYTES_PER_S / 1e12:.1f} TB/s, "
             f"{MULTIPROCESSORS * SCHEDULERS * CYCLES_PER_S / 1e9:.0f} G warp instructions/s", "",
             f"{'class':<34}{'TFLOP':>7}{'GB':>7}{'Gslots':>8}{'floor ms':>10}{'now':>8}{'planned':>9}{'measured':>10}"]
    for row in rows:
        lines.append(f"{row.name:<34}{row.flops / 1e12:>7.2f}{row.moved_bytes / 1e9:>7.2f}{row.slots / 1e9:>8.2f}"
                     f"{row.floor_ms():>10.2f}{row.ms[0]:>8.2f}{row.ms[1]:>9.2f}{shown(row.measured_ms):>10}")
    now, planned, known = sums(rows)
    lines.append(f"{'sum':<34}{'':>22}{sum(row.floor_ms() for row in rows):>10.2f}{now:>8.2f}{planned:>9.2f}"
                 f"{shown(known):>10}")
    lines.append(f"without --gemm-choices: {by_first_proposals(work):.2f} ms now")
    lines.append(f"tokens/s: {1e3 * tokens / now:.0f} now, {1e3 * tokens / planned:.0f} planned")
    if sizes["batch"] == 32 and sizes["layers"] == 12:
        verdict = "reached" if now <= TARGET_MS else f"missed by {now - TARGET_MS:.1f} ms"
        lines.append(f"target {TARGET_MS} ms: {verdict}, by the code as it is")
    return lines


def shown(ms: Optional[float]) -> str:
    return "-" if ms is None else f"{ms:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Estimates a training step of GPT-2 on an H200.")
    parser.add_argument("--work", metavar="FILE", required=True, help="of cuda_kernel_bench --json, with or without "
                        "--list")
    parser.add_argument("--why", action="store_true", help="also what each line rests on")
    args = parser.parse_args()
    try:
        work = json.loads(Path(args.work).read_text())
        print("\n".join(table(work)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"estimate_gpu_step: --work: {args.work}: {error!r}; expected what cuda_kernel_bench --json writes",
              file=sys.stderr)
        return 2
    if args.why:
        print("\n" + "\n".join(f"{row.name}: {row.why}" for row in rows_of(work) if row.why))
    return 0


if __name__ == "__main__":
    sys.exit(main())
