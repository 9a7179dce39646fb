"""Checks that measure: kernels, training against PyTorch, and the GPU's counters of a few kernels."""

import json
import re
import sys
from pathlib import Path
from typing import List

from check_runner import Check, CheckRun, CheckSkipped, Facts, ProgramFailed
from machine import ROOT, find_tool, program

BATCH = "32"  # the expected figures are for this batch
UNPADDED = "50257"  # tokens of GPT-2: rows of the head are at odd addresses, unless they are padded to 50304
PADDED = ["--vocabulary", UNPADDED, "--vocab-multiple", "64"]
# Part of the name of a case in cuda_kernel_bench: how many of its kernels to look at.
COUNTED = {"attention": 4, "cross_entropy": 3, "layer_norm_grad": 3}
SECTIONS = ["SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "InstructionStats", "LaunchStats"]
# The metrics that are recorded; the log has all.
RECORDED = re.compile(r"Duration|Throughput|Issue Slots Busy|Executed Instructions|Bank Conflicts|Registers Per Thread")


def first_speed_checks(output: Path) -> List[Check]:
    """Compares ours with PyTorch with FlashAttention, then measures PyTorch with cuDNN's attention."""

    def ours_and_flash(run: CheckRun) -> Facts:
        return compare_with_torch(run, output, "flash", ["--stages", "0", "--sdpa", "flash", *COMPILED, *PADDED])

    def cudnn(run: CheckRun) -> Facts:
        return compare_with_torch(run, output, "cudnn", ["--torch-only", "--sdpa", "cudnn", *COMPILED, *PADDED])

    return [Check("kernel_bench", check_kernel_bench, ("cuda_kernel_bench",), alone=True, normal_s=60),
            Check("torch.flash", ours_and_flash, ("gpt",), alone=True, normal_s=150),
            Check("torch.cudnn", cudnn, alone=True, normal_s=60)]


COMPILED = ["--compile-modes", "default", "--precisions", "master", "--batch", BATCH]


def last_speed_checks(output: Path) -> List[Check]:
    def at_length(run: CheckRun) -> Facts:
        return compare_with_torch(run, output, "stages", ["--stages", "0,3", "--batch", BATCH, *PADDED])

    return [Check("ncu", check_counters, ("cuda_kernel_bench",), alone=True, normal_s=60),
            Check("torch.stages", at_length, ("gpt",), alone=True, normal_s=360)]


def check_kernel_bench(run: CheckRun) -> Facts:
    path = run.folder / "kernels.json"
    command = [program("cuda_kernel_bench"), "--batch", BATCH, "--json", str(path)]
    table = run.execute_well(command).splitlines()
    measured = json.loads(path.read_text())
    run.execute_well([*command, "--vocab", UNPADDED, "--filter", "head"])
    return {"table": table, "measured": measured, "unpadded": json.loads(path.read_text())["kernels"]}


def compare_with_torch(run: CheckRun, output: Path, name: str, flags: List[str]) -> Facts:
    script = ROOT / "tools/bench/gpu/compare_with_torch_gpu.py"
    path = output / f"compare_{name}.json"
    path.unlink(missing_ok=True)
    # The next run reuses what PyTorch has compiled. Its cache may not tell attention kernels apart.
    cache = {"TORCHINDUCTOR_CACHE_DIR": str((output / f"torch_cache_{name}").resolve())}
    done = run.execute([sys.executable, str(script), "--gpt", program("gpt"), "--rounds", "1", "--json", str(path),
                        *flags], cache)
    skipped = re.search(r"^SKIPPED: (.*)", done.output, re.MULTILINE)
    if skipped is not None:
        raise CheckSkipped(skipped.group(1))
    result = json.loads(path.read_text()) if path.exists() else {}
    facts = {key: result[key] for key in ("summary", "ceilings") if key in result}
    if done.exit_code != 0 or not facts:
        lines = re.findall(r"^compare_with_torch_gpu: .*", done.output, re.MULTILINE)
        failed = ProgramFailed(lines[-1] if lines else f"compare_with_torch_gpu: exit code {done.exit_code}")
        failed.facts = facts  # the facts of the contenders that did run
        raise failed
    return facts


def check_counters(run: CheckRun) -> Facts:
    ncu = find_tool("ncu")
    if ncu is None:
        raise CheckSkipped("there is no ncu in CUDA_PATH/bin, /usr/local/cuda*/bin or PATH")
    sections = [word for section in SECTIONS for word in ("--section", section)]
    counting = [ncu, "--target-processes", "all", "--clock-control", "none", "--csv", *sections,
                "--kernel-name", "regex:Attention|CrossEntropy|LayerNormGrad|ColumnSum"]
    bench = [program("cuda_kernel_bench"), "--batch", BATCH, "--product-size", "256", "--copy-mb", "16",
             "--cold-mb", "0"]
    tables = {}
    for name, count in COUNTED.items():
        done = run.execute([*counting, "--launch-count", str(count), *bench, "--filter", name])
        error = re.search(r"^==ERROR== .*", done.output, re.MULTILINE)
        if error is not None:
            raise CheckSkipped(f"ncu: {error.group(0)[10:]}")
        if done.exit_code != 0:
            raise ProgramFailed(f"ncu: exit code {done.exit_code}")
        lines = [line for line in done.output.splitlines() if line.startswith('"') and RECORDED.search(line)]
        if not lines:
            raise ProgramFailed(f"ncu: it saw no kernel of {name}")
        tables[name] = lines
    return {"counters": tables}
