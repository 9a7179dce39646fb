#!/usr/bin/python3
"""Measures our demos against PyTorch (torch_peer.py), in turns on the same machine, and prints a table.

Run, from anywhere, after building the demos:

    bazel build //models/recipe //models/gpt //models/llama //models/lstm //models/bert //models/vit //models/resnet
    tools/bench/compare_with_torch.py                                  # recipe and gpt, stages 0 to 3
    tools/bench/compare_with_torch.py --models recipe --stages 0,2 --rounds 5 --json /tmp/compare.json
    tools/bench/compare_with_torch.py --models gpt --stages 0 --dtypes f32,bf16
    tools/bench/compare_with_torch.py --models llama,lstm,bert,vit,resnet --stages 0 --compile --python /tmp/torch/bin/python
    tools/bench/compare_with_torch.py --recipe "bazel run //models/recipe --"
    tools/bench/compare_with_torch.py --torch-only                     # the baselines alone

Our stage 0 is compared with DDP, stages 1 to 3 with ZeroRedundancyOptimizer; in bf16 with PyTorch's autocast to
bf16, and, where both are measured, with ourselves in f32. Every round runs each contender once,
every other round in reverse order. A run during which other processes took more than 5 % of the machine's
processors counts as disturbed: it is left out of the medians as long as its contender has an undisturbed run.

Exit codes: 0 measured, or skipped because PyTorch is absent; 1 a run failed; 2 a wrong flag, a missing program, or a
PyTorch that cannot show here what it can do (a slow BLAS, bf16 that does not run).
"""

import argparse
import contextlib
import json
import os
import platform
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional

REPOSITORY = Path(__file__).resolve().parents[2]
PEER = Path(__file__).resolve().parent / "torch_peer.py"
DEFAULT_BATCH = {"recipe": 20, "gpt": 8, "llama": 8, "lstm": 16, "bert": 32, "vit": 64, "resnet": 32}  # per rank
TEXT_MODELS = ["gpt", "llama", "lstm", "bert"]
# What is measured is a step: no dropout, which the peers have not, and little of what comes after the last one.
PROGRAMS = {
    "recipe": "bazel-bin/models/recipe/recipe",
    "gpt": "bazel-bin/models/gpt/gpt --preset mini",
    "llama": "bazel-bin/models/llama/llama --preset mini --eval-windows 1",
    "lstm": "bazel-bin/models/lstm/lstm --eval-windows 1",
    "bert": "bazel-bin/models/bert/bert --preset mini --eval-windows 1",
    "vit": "bazel-bin/models/vit/vit --dropout 0",
    "resnet": "bazel-bin/models/resnet/resnet --preset resnet18 --frame 2 --train-images 6000 --test-images 64",
}
DISTURBED_ABOVE = 0.05  # share of the machine's processors


class RunFailed(Exception):
    pass


@dataclass
class Run:
    """One run of one contender."""

    ms_per_step: float
    tokens_per_s: Optional[float]
    rss_peak_bytes: Optional[int]
    others_share: float  # of all processors, taken by other processes (or the host) meanwhile

    @property
    def disturbed(self) -> bool:
        return self.others_share > DISTURBED_ABOVE


@dataclass
class Contender:
    """A program with its flags; `rivals` names the contenders it is compared with."""

    model: str
    name: str
    command: List[str]
    report_flag: str
    rivals: List[str] = field(default_factory=list)
    runs: List[Run] = field(default_factory=list)

    def counted(self) -> List[Run]:
        return [run for run in self.runs if not run.disturbed] or self.runs

    def median_ms(self) -> float:
        return statistics.median(run.ms_per_step for run in self.counted())


# ---- what to run


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Our demos against PyTorch.",
                                     epilog="Default commands are relative to the root of the repository.")
    for model, command in PROGRAMS.items():
        parser.add_argument(f"--{model}", metavar="COMMAND", default=command)
    parser.add_argument("--models", default="recipe,gpt", help=f"some of {', '.join(PROGRAMS)}; default recipe,gpt")
    parser.add_argument("--stages", default="0,1,2,3")
    parser.add_argument("--dtypes", default="f32", help="f32, bf16 or both; default f32")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, help=f"per rank; default {DEFAULT_BATCH}")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wait-idle", type=float, default=30, metavar="SECONDS",
                        help="before each run, wait this long at most for the machine to be idle (default 30)")
    parser.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="for one run")
    parser.add_argument("--python", default="/usr/bin/python3", help="an interpreter that has torch")
    parser.add_argument("--compile", action="store_true", help="also against torch.compile")
    parser.add_argument("--torch-only", action="store_true", help="measure the baselines alone")
    parser.add_argument("--json", metavar="FILE", help="also write every run and the summary here")
    args = parser.parse_args()
    args.models = args.models.split(",")
    args.stages = args.stages.split(",")
    args.dtypes = args.dtypes.split(",")
    known = [("--models", args.models, list(PROGRAMS)), ("--stages", args.stages, list("0123")),
             ("--dtypes", args.dtypes, ["f32", "bf16"])]
    for flag, values, allowed in known:
        wrong = [value for value in values if value not in allowed]
        if wrong:
            parser.error(f"{flag}: got {wrong[0]!r}, expected some of {', '.join(allowed)}")
    return args


def contenders(args: argparse.Namespace) -> List[Contender]:
    return [c for model in args.models for dtype in args.dtypes
            for c in torch_contenders(args, model, dtype) + our_contenders(args, model, dtype)]


def torch_contenders(args: argparse.Namespace, model: str, dtype: str) -> List[Contender]:
    common = [args.python, str(PEER), "--model", model, "--dtype", dtype, *sizes(args, model)]
    modes = [mode for mode in ("ddp", "zero") if args.torch_only or mode in map(rival_mode, args.stages)]
    return [Contender(model, in_dtype(f"torch {mode}{suffix}", dtype), [*common, "--mode", mode, *flags], "--json")
            for mode in modes for suffix, flags in compilations(args).items()]


def compilations(args: argparse.Namespace) -> Dict[str, List[str]]:
    """How PyTorch runs the model: what its contenders' names end with, and their flags."""
    return {"": [], " compiled": ["--compile"]} if args.compile else {"": []}


def our_contenders(args: argparse.Namespace, model: str, dtype: str) -> List[Contender]:
    if args.torch_only:
        return []
    common = [*shlex.split(getattr(args, model)), *sizes(args, model), "--micro-batches", str(args.ranks),
              "--dtype", dtype]
    result = []
    for stage in args.stages:
        rivals = [in_dtype(f"torch {rival_mode(stage)}{suffix}", dtype) for suffix in compilations(args)]
        if dtype != "f32" and "f32" in args.dtypes:
            rivals.append(f"ours stage {stage}")
        name = in_dtype(f"ours stage {stage}", dtype)
        result.append(Contender(model, name, [*common, "--zero", stage], "--report", rivals))
    return result


def in_dtype(name: str, dtype: str) -> str:
    return name if dtype == "f32" else f"{name} {dtype}"


def rival_mode(stage: str) -> str:
    return "ddp" if stage == "0" else "zero"


def sizes(args: argparse.Namespace, model: str) -> List[str]:
    batch = args.batch or DEFAULT_BATCH[model]
    return ["--ranks", str(args.ranks), "--batch", str(batch), "--steps", str(args.steps)]


def missing_programs(args: argparse.Namespace) -> List[str]:
    """One line for each of our programs that is not there."""
    lines = []
    for model in [] if args.torch_only else args.models:
        program = (shlex.split(getattr(args, model)) or [""])[0]
        if shutil.which(str(REPOSITORY / program) if "/" in program else program) is None:
            lines.append(f"--{model}: no program {program!r}; build it (bazel build //models/{model}) or name another")
    return lines


def has_torch(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", "import torch.distributed"], capture_output=True).returncode == 0
    except OSError:
        return False


def unfair_to_torch(python: str, dtypes: List[str]) -> Optional[str]:
    """Why PyTorch would be slow, or not run at all, for reasons that are not its own."""
    # Debian's python3-torch takes whichever BLAS is there; the reference one is several times slower than others.
    probe = "import torch; torch.ones(64, 64) @ torch.ones(64, 64); print(open('/proc/self/maps').read())"
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=True,
                          env={**os.environ, "OPENBLAS_VERBOSE": "2"})
    if "/blas/libblas.so" in done.stdout:
        return ("PyTorch multiplies with the reference BLAS here, which is no fair rival\n"
                "  hint: apt-get install libopenblas0-pthread")
    if "Core: Prescott" in done.stdout + done.stderr and "avx2" in Path("/proc/cpuinfo").read_text():
        return ("PyTorch's OpenBLAS does not know this processor and takes its slowest kernels, those of Prescott\n"
                "  hint: OPENBLAS_CORETYPE=SKYLAKEX where there is AVX-512, else HASWELL; "
                "ATEN_CPU_CAPABILITY=avx512 may help too")
    if "bf16" in dtypes:
        probe = "import torch; a = torch.ones(64, 64).bfloat16(); torch.nn.functional.linear(a, a)"
        if subprocess.run([python, "-c", probe], capture_output=True).returncode == -signal.SIGILL:
            return ("PyTorch dies of an illegal instruction in bf16: its oneDNN sees AMX tiles, but not their sizes "
                    "(CPUID leaf 0x1D), which some virtual machines hide\n"
                    "  hint: DNNL_MAX_CPU_ISA=AVX512_CORE_BF16 makes it do without tiles, at a third of the speed")
    return None


# ---- running


def measure(contender: Contender, timeout_s: float) -> Run:
    with tempfile.TemporaryDirectory(prefix="compare.") as folder:
        report_path = Path(folder) / "report.json"
        command = [*contender.command, contender.report_flag, str(report_path)]
        others_share = run_to_end(command, timeout_s)
        try:
            report = json.loads(report_path.read_text())
            speed = report["speed"]
            return Run(speed["ms_per_step_median"], speed.get("tokens_per_s") or None,
                       report.get("memory", {}).get("rss_peak"), others_share)
        except (OSError, ValueError, KeyError) as error:
            raise RunFailed(f"{shlex.join(command)}: no usable report: {error!r}") from error


def run_to_end(command: List[str], timeout_s: float) -> float:
    """Runs the command; the share of the machine's processors that others took meanwhile."""
    start, machine_start, own_start = time.monotonic(), machine_cpu_seconds(), children_cpu_seconds()
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except BaseException as error:
        end_group(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise RunFailed(f"{shlex.join(command)}: not done after {timeout_s:g} s") from error
        raise
    if process.returncode != 0:
        last_lines = "\n".join("  " + line for line in output.splitlines()[-15:])
        raise RunFailed(f"{shlex.join(command)}: exit code {process.returncode}; its last lines:\n{last_lines}")
    machine = machine_cpu_seconds() - machine_start
    own = children_cpu_seconds() - own_start
    return max(0.0, machine - own) / ((time.monotonic() - start) * (os.cpu_count() or 1))


def end_group(process: "subprocess.Popen[str]") -> None:
    """Ends the process and all it started: politely, so that they remove their temporary files, then for sure."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def machine_cpu_seconds() -> float:
    """Processor time used on this machine since it started, all processes, including time its host took away."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_for_idle(limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        before = machine_cpu_seconds()
        time.sleep(1)
        if (machine_cpu_seconds() - before) / (os.cpu_count() or 1) < DISTURBED_ABOVE:
            return


def measure_all(todo: List[Contender], args: argparse.Namespace) -> None:
    for number in range(1, args.rounds + 1):
        for contender in todo if number % 2 else reversed(todo):
            wait_for_idle(args.wait_idle)
            run = measure(contender, args.timeout)
            contender.runs.append(run)
            print(f"round {number}/{args.rounds}  {contender.model} {contender.name}: {run.ms_per_step:.1f} ms per step"
                  + (f"  (disturbed: others took {run.others_share:.0%})" if run.disturbed else ""), flush=True)


# ---- reporting


def different_work(todo: List[Contender]) -> List[str]:
    """One line for each of our contenders whose steps hold other numbers of tokens than a rival's."""
    tokens = {(c.model, c.name): tokens_per_step(c.runs[0]) for c in todo}
    lines = []
    for contender in todo:
        for rival in contender.rivals if contender.model in TEXT_MODELS else []:
            ours, theirs = tokens[contender.model, contender.name], tokens[contender.model, rival]
            if ours and theirs and abs(ours / theirs - 1) > 0.05:
                lines.append(f"{contender.model} {contender.name} does {ours:.0f} tokens per step but {rival} {theirs:.0f}: "
                             "not the same work")
    return lines


def tokens_per_step(run: Run) -> float:
    return run.ms_per_step * (run.tokens_per_s or 0) / 1000


def summary(todo: List[Contender]) -> List[Dict[str, Any]]:
    medians = {(c.model, c.name): c.median_ms() for c in todo}
    rows = []
    for contender in todo:
        counted = contender.counted()
        ms = sorted(run.ms_per_step for run in counted)
        rows.append({
            "model": contender.model,
            "name": contender.name,
            "ms_per_step_median": contender.median_ms(),
            "ms_per_step_min": ms[0],
            "ms_per_step_max": ms[-1],
            "tokens_per_s": median_or_none([run.tokens_per_s for run in counted]),
            "rss_peak": median_or_none([run.rss_peak_bytes for run in counted]),
            "counted_runs": len(counted),
            "all_disturbed": all(run.disturbed for run in counted),
            "times_as_fast_as": {rival: medians[contender.model, rival] / contender.median_ms()
                                 for rival in contender.rivals},
        })
    return rows


def median_or_none(values: List[Optional[float]]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def print_table(rows: List[Dict[str, Any]]) -> None:
    print(f"\n{'model':<8}{'who':<24}{'ms/step':>10}{'min..max':>20}{'tokens/s':>10}{'peak MB':>9}{'runs':>6}"
          "  against others")
    for row in rows:
        spread = f"{row['ms_per_step_min']:.1f}..{row['ms_per_step_max']:.1f}"
        tokens = "-" if row["tokens_per_s"] is None else f"{row['tokens_per_s']:.0f}"
        peak = "-" if row["rss_peak"] is None else f"{row['rss_peak'] / 1e6:.0f}"
        ratio = ", ".join(f"{times:.2f} x {rival}" for rival, times in row["times_as_fast_as"].items())
        mark = "  (all runs disturbed)" if row["all_disturbed"] else ""
        print(f"{row['model']:<8}{row['name']:<24}{row['ms_per_step_median']:>10.1f}{spread:>20}{tokens:>10}{peak:>9}"
              f"{row['counted_runs']:>6}  {ratio}{mark}")
    print("ms/step: median over the counted runs of each run's own median step. 2.00 x = twice as fast.\n"
          "tokens/s: rows per second where rows are no text. peak MB: resident memory of the largest rank.")


def write_json(path: str, args: argparse.Namespace, todo: List[Contender], rows: List[Dict[str, Any]]) -> None:
    runs = [{"model": c.model, "name": c.name, "command": c.command, "runs": [asdict(run) for run in c.runs]}
            for c in todo]
    machine = {"processor": processor_name(), "cores": os.cpu_count()}
    result = {"config": vars(args), "machine": machine, "summary": rows, "contenders": runs}
    Path(path).write_text(json.dumps(result, indent=1) + "\n")


def processor_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the run in progress too
    args = parse_arguments()
    if not has_torch(args.python):
        print(f"SKIPPED: {args.python} cannot import torch (Debian: apt-get install python3-torch)")
        return 0
    problem = unfair_to_torch(args.python, args.dtypes)
    if problem is not None:
        print(f"compare_with_torch: {problem}", file=sys.stderr)
        return 2
    missing = missing_programs(args)
    if missing:
        print("\n".join(f"compare_with_torch: {line}" for line in missing), file=sys.stderr)
        return 2
    todo = contenders(args)
    try:
        measure_all(todo, args)
    except RunFailed as error:
        print(f"compare_with_torch: {error}", file=sys.stderr)
        return 1
    rows = summary(todo)
    print_table(rows)
    if args.json:
        write_json(args.json, args, todo, rows)
    unequal = different_work(todo)
    print("".join(f"compare_with_torch: {line}\n" for line in unequal), file=sys.stderr, end="")
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
