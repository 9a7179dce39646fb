#!/usr/bin/env python3
"""Measures our gpt demo on a GPU against PyTorch (torch_gpu_peer.py), in turns, and prints a table.

GPT-2 124M, context 1024, bf16, one GPU. On a machine with a GPU, CUDA, NCCL and PyTorch but without Bazel, in a
directory made by tools/bundle.sh:

    tools/bench/gpu/compare_with_torch_gpu.py --json /tmp/compare.json
    tools/bench/gpu/compare_with_torch_gpu.py --stages 0 --cuda-graph on --rounds 5 --batch 32
    tools/bench/gpu/compare_with_torch_gpu.py --gpt bazel-bin/models/gpt/gpt         # in the source tree: the default

Ours runs at every stage, queued and as a CUDA graph, by default and tuned: with the algorithms of products that are the
fastest here (--gemm-choices), and with steps that wait for no check of the one before (--on-non-finite ignore). PyTorch
runs eagerly and compiled, each with bf16 parameters and f32 masters and with autocast. Every round first measures the
GPU's ceilings, then runs each contender once, every other round in reverse order. Ours is held against the fastest eager
and the fastest compiled PyTorch.

MFU is (6N + 12LCT) * tokens/s / peak: N the parameters without the position embedding, L layers, C channels, T
context; attention counts as if nothing were masked. The peak is that of a large bf16 product that PyTorch ran in the
same rounds, not the maker's.

A contender that fails is left out and named at the end. Exit codes: 0 measured, or skipped because there is no GPU or
no PyTorch for it; 1 a run failed; 2 a wrong flag or a missing program.
"""

import argparse
import array
import json
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compare_with_torch import REPOSITORY, RunFailed, median_or_none, processor_name, run_to_end  # noqa: E402
from torch_gpu_peer import COMPILE_MODES, SDPA_KERNELS, add_size_flags, at_least_one  # noqa: E402

PEER = Path(__file__).resolve().parent / "torch_gpu_peer.py"
LARGEST_TOKEN_TYPE = 1 << 16  # .bin files hold u16
TOKENS = "tokens.bin"


@dataclass
class Run:
    """One run of one contender."""

    ms_per_step: float
    tokens_per_s: float
    device_bytes: int


@dataclass
class Contender:
    """A program with its flags; `group` is "ours", "eager" or "compiled"."""

    name: str
    group: str
    command: List[str]
    report_flag: str
    runs: List[Run] = field(default_factory=list)
    failure: Optional[str] = None

    def median_ms(self) -> float:
        return statistics.median(run.ms_per_step for run in self.runs)


# ---- what to run


def default_program() -> str:
    """In a bundle its launcher; in the source tree what Bazel builds."""
    return "gpt" if (REPOSITORY / ".zerograph_bundle").exists() else "bazel-bin/models/gpt/gpt"


def list_of(allowed: List[str]) -> Any:
    def parse(text: str) -> List[str]:
        values = text.split(",")
        for value in values:
            if value not in allowed:
                raise argparse.ArgumentTypeError(f"got {value!r}, expected some of {', '.join(allowed)}")
        return values

    return parse


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Our gpt demo on a GPU against PyTorch.",
                                     epilog="A program's path is relative to the root of the bundle or source tree.")
    parser.add_argument("--gpt", metavar="COMMAND", default=default_program(), help="our program, with more flags")
    parser.add_argument("--python", default=sys.executable,
                        help="an interpreter that has torch (default: the one that runs this)")
    parser.add_argument("--peer", metavar="FILE", default=str(PEER), help=argparse.SUPPRESS)
    parser.add_argument("--stages", type=list_of(list("0123")), default=list("0123"))
    parser.add_argument("--cuda-graph", type=list_of(["off", "on"]), default=["off", "on"],
                        help="how ours is run; default off,on")
    parser.add_argument("--tuned", type=list_of(["off", "on"]), default=["off", "on"],
                        help="ours by default, and with --gemm-choices and --on-non-finite ignore; default off,on")
    parser.add_argument("--vocab-multiple", type=at_least_one, default=1, metavar="N",
                        help="the logits have the next multiple of N columns: ours by its flag of that name, PyTorch's "
                        "by as many tokens (default 1)")
    parser.add_argument("--compile-modes", type=list_of(COMPILE_MODES), default=["none", "default"],
                        help="of PyTorch; default none,default")
    parser.add_argument("--precisions", type=list_of(["master", "autocast"]), default=["master", "autocast"],
                        help="of PyTorch; default master,autocast")
    parser.add_argument("--sdpa", choices=SDPA_KERNELS, default="flash", help="PyTorch's attention kernel")
    parser.add_argument("--torch-only", action="store_true", help="measure PyTorch alone")
    add_size_flags(parser)
    parser.add_argument("--steps", type=at_least_one, default=20, help="measured steps per run (default 20)")
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="for one run (default 600)")
    parser.add_argument("--json", metavar="FILE", help="also write every run and the summary here")
    args = parser.parse_args(arguments)
    if padded_vocabulary(args) > LARGEST_TOKEN_TYPE:
        multiples = "" if args.vocab_multiple == 1 else f" in multiples of {args.vocab_multiple}"
        parser.error(f"--vocabulary: got {args.vocabulary}{multiples}, expected at most {LARGEST_TOKEN_TYPE}")
    if args.embd % args.heads:
        parser.error(f"--heads: got {args.heads}, expected a divisor of --embd {args.embd}")
    if args.json and not Path(args.json).resolve().parent.is_dir():
        parser.error(f"--json: there is no directory for {args.json}")
    return args


def padded_vocabulary(args: argparse.Namespace) -> int:
    return -(-args.vocabulary // args.vocab_multiple) * args.vocab_multiple


def sizes(args: argparse.Namespace, vocabulary_flag: str, vocabulary: int) -> List[str]:
    """Flags that both programs have."""
    return ["--layers", str(args.layers), "--heads", str(args.heads), "--embd", str(args.embd),
            "--context", str(args.context), vocabulary_flag, str(vocabulary), "--batch", str(args.batch),
            "--lr", str(args.lr)]


def torch_contenders(args: argparse.Namespace) -> List[Contender]:
    common = [args.python, args.peer, *sizes(args, "--vocabulary", padded_vocabulary(args)), "--sdpa", args.sdpa,
              "--steps", str(args.steps)]
    return [Contender(f"torch {'eager' if mode == 'none' else 'compile ' + mode}, {precision}",
                      "eager" if mode == "none" else "compiled",
                      [*common, "--compile", mode, "--precision", precision], "--json")
            for mode in args.compile_modes for precision in args.precisions]


def our_contenders(args: argparse.Namespace, program: List[str], folder: Path) -> List[Contender]:
    """Their data, and what they measure of products, lie in the folder."""
    steps = args.steps + 1  # the first warms up: its median leaves it out
    padding = [] if args.vocab_multiple == 1 else ["--vocab-multiple", str(args.vocab_multiple)]
    # Nothing but training: no validation on the way, and as little as there is at the end.
    common = [*program, *sizes(args, "--vocab", args.vocabulary), *padding, "--data", str(folder / TOKENS),
              "--dtype", "bf16", "--device", "cuda", "--steps", str(steps), "--eval-every", str(steps),
              "--eval-windows", "1", "--sample-tokens", "0"]
    flags = {"graph": ["--cuda-graph"],
             "tuned": ["--gemm-choices", str(folder / "gemm_choices.json"), "--on-non-finite", "ignore"]}

    def contender(stage: str, ways: List[str]) -> Contender:
        own = [flag for way in ways for flag in flags[way]]
        return Contender(", ".join([f"ours stage {stage}", *ways]), "ours", [*common, "--zero", stage, *own],
                         "--report")

    return [contender(stage, ["graph"] * (graph == "on") + ["tuned"] * (tuned == "on"))
            for stage in args.stages for graph in args.cuda_graph for tuned in args.tuned]


def write_tokens(path: Path, args: argparse.Namespace) -> None:
    """Random tokens, u16 little-endian: what they are changes nothing about the time."""
    validation = 2 * args.batch * (args.context + 1)  # more than one round of it, at --validation-fraction 0.1
    tokens = array.array("H", random.Random(1).choices(range(args.vocabulary), k=max(1 << 20, 10 * validation)))
    if sys.byteorder == "big":
        tokens.byteswap()
    path.write_bytes(tokens.tobytes())


def find_program(command: str) -> Optional[List[str]]:
    """The command with its program's whole path; None when there is none."""
    program, *flags = shlex.split(command) or [""]
    found = shutil.which(str(REPOSITORY / program)) or shutil.which(program)
    return None if found is None else [found, *flags]


# ---- running


def probe(args: argparse.Namespace) -> Dict[str, Any]:
    """What the peer finds here; "reason" says why it cannot run, or is None."""
    command = [args.python, args.peer, "--probe"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
        return dict(json.loads((done.stdout.splitlines() or [""])[-1]))
    except OSError as error:
        return {"reason": f"there is no interpreter {args.python} ({error.strerror})"}
    except subprocess.TimeoutExpired as error:
        raise RunFailed(f"{shlex.join(command)}: not done after {args.timeout:g} s") from error
    except ValueError as error:
        raise RunFailed(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr}") from error


def other_programs() -> List[str]:
    """That use a GPU of this machine, as far as nvidia-smi shows them."""
    command = ["nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def run_with_report(command: List[str], report_flag: str, timeout_s: float) -> Dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="compare_gpu.") as folder:
        path = Path(folder) / "report.json"
        full = [*command, report_flag, str(path)]
        run_to_end(full, timeout_s)
        try:
            return dict(json.loads(path.read_text()))
        except (OSError, ValueError) as error:
            raise RunFailed(f"{shlex.join(full)}: no usable report: {error!r}") from error


def read_run(report: Dict[str, Any]) -> Run:
    """From a report of ours or of the peer."""
    try:
        memory, speed = report["memory"], report["speed"]
        if "device_peak" in memory:
            device_bytes = memory["device_peak"]
        else:
            device_bytes = memory["measured"]["peak"] + memory["device_libraries"]
        return Run(float(speed["ms_per_step_median"]), float(speed["tokens_per_s"]), int(device_bytes))
    except (KeyError, TypeError, ValueError) as error:
        raise RunFailed(f"no usable report: {error!r}") from error


def check_work(run: Run, args: argparse.Namespace) -> None:
    """Every contender must do the same work."""
    tokens, expected = run.ms_per_step * run.tokens_per_s / 1000, args.batch * args.context
    if abs(tokens / expected - 1) > 0.05:
        raise RunFailed(f"it does {tokens:.0f} tokens per step, expected {expected}: not the same work")


def measure_all(todo: List[Contender], args: argparse.Namespace) -> List[Dict[str, float]]:
    """Fills in the runs; the ceilings of each round."""
    ceilings = []
    for number in range(1, args.rounds + 1):
        command = [args.python, args.peer, "--ceilings"]
        ceilings.append(run_with_report(command, "--json", args.timeout)["ceilings"])
        for contender in todo if number % 2 else reversed(todo):
            if contender.failure is not None:
                continue
            label = f"round {number}/{args.rounds}  {contender.name}"
            try:
                run = read_run(run_with_report(contender.command, contender.report_flag, args.timeout))
                check_work(run, args)
            except RunFailed as error:
                contender.failure = str(error)
                print(f"{label}: FAILED", flush=True)
                continue
            contender.runs.append(run)
            print(f"{label}: {run.ms_per_step:.2f} ms per step", flush=True)
    return ceilings


# ---- reporting


def flops_per_token(args: argparse.Namespace) -> int:
    """6N + 12LCT; see the head of this file."""
    channels = args.embd
    per_block = (12 * channels + 13) * channels
    parameters = args.layers * per_block + (args.vocabulary + 2) * channels  # the head is the embedding
    return 6 * parameters + 12 * args.layers * channels * args.context


def fastest_ms(todo: List[Contender], group: str) -> Optional[float]:
    return min((c.median_ms() for c in todo if c.group == group and c.runs), default=None)


def summary(todo: List[Contender], ceilings: Dict[str, float], args: argparse.Namespace) -> List[Dict[str, Any]]:
    eager, compiled = fastest_ms(todo, "eager"), fastest_ms(todo, "compiled")
    rows = []
    for contender in todo:
        if not contender.runs:
            continue
        ms = sorted(run.ms_per_step for run in contender.runs)
        tokens_per_s = statistics.median(run.tokens_per_s for run in contender.runs)
        rows.append({
            "name": contender.name,
            "group": contender.group,
            "ms_per_step_median": contender.median_ms(),
            "ms_per_step_min": ms[0],
            "ms_per_step_max": ms[-1],
            "tokens_per_s": tokens_per_s,
            "device_bytes": median_or_none([run.device_bytes for run in contender.runs]),
            "mfu": flops_per_token(args) * tokens_per_s / ceilings["flops_per_s"],
            "times_as_fast_as_eager": eager and eager / contender.median_ms(),
            "times_as_fast_as_compiled": compiled and compiled / contender.median_ms(),
            "runs": len(contender.runs),
        })
    return rows


def print_table(rows: List[Dict[str, Any]], ceilings: Dict[str, float], args: argparse.Namespace) -> None:
    print(f"\nceilings: {ceilings['flops_per_s'] / 1e12:.1f} TFLOP/s of bf16 products, "
          f"{ceilings['bytes_per_s'] / 1e9:.0f} GB/s; {flops_per_token(args) / 1e9:.3f} GFLOP per token")
    print(f"{'who':<34}{'ms/step':>10}{'min..max':>20}{'tokens/s':>12}{'MFU':>8}{'peak MB':>9}{'runs':>6}"
          f"{'x eager':>9}{'x compiled':>12}")
    for row in rows:
        spread = f"{row['ms_per_step_min']:.2f}..{row['ms_per_step_max']:.2f}"
        ratios = [row["times_as_fast_as_eager"], row["times_as_fast_as_compiled"]]
        eager, compiled = ("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        print(f"{row['name']:<34}{row['ms_per_step_median']:>10.2f}{spread:>20}{row['tokens_per_s']:>12.0f}"
              f"{row['mfu']:>8.1%}{row['device_bytes'] / 1e6:>9.0f}{row['runs']:>6}{eager:>9}{compiled:>12}")
    print("ms/step: median over the runs of each run's own median step. x: times as fast as the fastest eager and the\n"
          "fastest compiled PyTorch. MFU: (6N + 12LCT) * tokens/s over the measured peak. peak MB: what PyTorch\n"
          "allocated at most; ours is the arena and what libraries take beside it.")


def compare(args: argparse.Namespace) -> int:
    machine = probe(args)
    if machine["reason"] is not None:
        print(f"SKIPPED: {machine['reason']}")
        return 0
    program = [] if args.torch_only else find_program(args.gpt)
    if program is None:
        print(f"compare_with_torch_gpu: --gpt: no program {args.gpt!r} in {REPOSITORY} or on PATH; build it "
              "(bazel build //models/gpt) or name another", file=sys.stderr)
        return 2
    machine.update(processor=processor_name(), cores=os.cpu_count(), other_programs=other_programs())
    print(f"{machine['gpu']}, PyTorch {machine['torch']} with CUDA {machine['cuda']}")
    for other in machine["other_programs"]:
        print(f"warning: another program uses a GPU here: {other}")
    with tempfile.TemporaryDirectory(prefix="compare_gpu.") as folder:
        write_tokens(Path(folder) / TOKENS, args)
        todo = torch_contenders(args) + (our_contenders(args, program, Path(folder)) if program else [])
        all_ceilings = measure_all(todo, args)
    ceilings = {key: statistics.median(c[key] for c in all_ceilings) for key in ("flops_per_s", "bytes_per_s")}
    rows = summary(todo, ceilings, args)
    print_table(rows, ceilings, args)
    if args.json:
        result = {"config": vars(args), "machine": machine, "ceilings": all_ceilings,
                  "flops_per_token": flops_per_token(args), "summary": rows, "contenders": [asdict(c) for c in todo]}
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n")
    failed = [c for c in todo if c.failure is not None]
    for contender in failed:
        print(f"compare_with_torch_gpu: {contender.name}: {contender.failure}", file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the run in progress too
    try:
        return compare(parse_arguments())
    except RunFailed as error:
        print(f"compare_with_torch_gpu: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
