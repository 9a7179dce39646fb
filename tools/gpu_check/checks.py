"""The checks of gpu_check.py, in their order: what is most informative first."""

import functools
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List

from check_runner import Check, CheckFailed, CheckRun, CheckSkipped, Facts, ProgramFailed
from machine import (LIBRARIES, ROOT, find_gpus, find_libraries, find_sanitizer, has_program, library_folders,
                     program)

DTYPES = ("f32", "bf16", "f16")
STAGES = ("0", "1", "2", "3")
MODELS = {  # flags that make a demo small, and give it several buckets
    "gpt": ["--layers", "2", "--heads", "2", "--embd", "128", "--context", "128", "--batch", "4", "--dropout", "0.1",
            "--clip-norm", "1", "--warmup-steps", "1", "--eval-windows", "4", "--sample-tokens", "8"],
    "recipe": ["--layers", "4", "--width", "256", "--lr", "1e-4"],  # its own rate leaves the range of 16 bits
    "classifier": ["--batch", "32"],
}
MICRO_BATCHES = 2  # which one rank or two compute
STEPS = 4
# Of a loss in the first steps, relative: sums come in another order on a GPU.
TOLERANCE = {"f32": 1e-4, "bf16": 2e-2, "f16": 5e-3}
TF32_TOLERANCE = TOLERANCE["f16"]  # which has as many bits of mantissa
NUM_SHARDS = 9  # of the test of stages, which has nine settings
OVERSIZE = 1.2  # times the GPU's memory


def all_checks(output: Path) -> List[Check]:
    return [
        Check("environment", check_environment, alone=True),
        *demo_checks(),
        *op_checks(),
        *stage_checks(),
        Check("out_of_memory", check_out_of_memory, ("gpt",), alone=True),
        *sanitizer_checks("memcheck"),
        *sanitizer_checks("racecheck"),
        Check("kernel_bench", check_kernel_bench, ("cuda_kernel_bench",), alone=True),
        Check("torch", lambda run: compare_with_torch(run, output / "compare_with_torch.json"), ("gpt",), alone=True),
    ]


# ---- the machine


def check_environment(run: CheckRun) -> Facts:
    gpus = find_gpus()
    run.execute_well(["nvidia-smi"])  # for the log: the driver's CUDA version, who else is there
    libraries = find_libraries()
    for pattern in LIBRARIES:
        if not any(Path(name).match(pattern) for name in libraries):
            looked = ", ".join(str(folder) for folder in library_folders())
            raise CheckFailed(f"there is no {pattern} in {looked}; add its folder to LD_LIBRARY_PATH")
    return {"gpus": [vars(gpu) for gpu in gpus], "libraries": libraries, "python": sys.version,
            "processors": os.cpu_count()}


# ---- the demos


def demo_checks() -> List[Check]:
    kinds: Dict[str, Callable[["Demo"], Facts]] = {
        "host": same_bits_through_the_host,
        "nccl": same_bits_over_nccl,
        "graph": same_bits_replayed,
        "near_cpu": losses_near_the_cpu,
    }
    checks = [demo_check(f"demo.{model}.{dtype}.{kind}", model, dtype, function)
              for dtype in DTYPES for model in MODELS for kind, function in kinds.items()]
    return [*checks, demo_check("demo.gpt.f32.tf32", "gpt", "f32", losses_near_the_cpu_in_tf32),
            demo_check("demo.gpt.f32.two_ranks_over_nccl", "gpt", "f32", two_ranks_over_nccl)]


def demo_check(name: str, model: str, dtype: str, function: Callable[["Demo"], Facts]) -> Check:
    return Check(name, lambda run: function(Demo(run, model, dtype)), (model,))


class Demo:
    """Trains a demo with this number type."""

    def __init__(self, run: CheckRun, model: str, dtype: str) -> None:
        self.run = run
        self.dtype = dtype
        self._command = [program(model), *MODELS[model], "--dtype", dtype, "--micro-batches", str(MICRO_BATCHES),
                         "--steps", str(STEPS), "--bucket-mb", "0.25", "--timeout", "60"]
        if model == "gpt":
            self._command += ["--data", str(write_text(run.folder))]

    def command(self, flags: str) -> List[str]:
        return [*self._command, *flags.split()]

    def train(self, flags: str) -> "Training":
        """To the end; its plan must be what it measured."""
        path = self.run.folder / "report.json"
        self.run.execute_well([*self.command(flags), "--report", str(path)])
        training = Training(flags, json.loads(path.read_text()))
        path.unlink()
        training.expect_plan_measured()
        return training


def write_text(folder: Path) -> Path:
    """Words by chance, always the same."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 6))) for _ in range(50)]
    path = folder / "text.txt"
    path.write_text(" ".join(draw.choices(words, k=12000)))
    return path


class Training:
    """What a report says."""

    def __init__(self, flags: str, report: Facts) -> None:
        self.flags = flags
        self._report = report
        self.losses: List[float] = [step["loss"] for step in report["steps"]]

    def bits(self) -> Facts:
        final = self._report["final"]
        return {"losses": self.losses, "gradient norms": [step["grad_norm"] for step in self._report["steps"]],
                "param_sha256": final["param_sha256"], "optimizer_sha256": final["optimizer_sha256"]}

    def expect_same_bits(self, expected: "Training") -> None:
        for what, value in self.bits().items():
            if value != expected.bits()[what]:
                raise CheckFailed(f"{what} of {self.flags}: got {value}, expected {expected.bits()[what]}, "
                                  f"as of {expected.flags}")

    def expect_plan_measured(self) -> None:
        memory, traffic = self._report["memory"], self._report["communication"]
        peaks = {"peak of each rank": set(memory["per_rank_peak"])}
        for what, got, expected in [("memory", memory["measured"], memory["predicted"]),
                                    ("traffic", traffic["measured"], traffic["predicted"]),
                                    ("peaks", peaks, {"peak of each rank": {memory["predicted"]["peak"]}})]:
            for key in expected:
                if got[key] != expected[key]:
                    raise CheckFailed(f"{what} of {self.flags}: {key}: measured {got[key]}, planned {expected[key]}")


def same_bits_through_the_host(demo: Demo) -> Facts:
    """The plainest run of all first; then two ranks, which may share the GPU."""
    expected = demo.train("--device cuda --gpu-collectives host")
    for stage in STAGES:
        demo.train(f"--device cuda --gpu-collectives host --ranks 2 --zero {stage}").expect_same_bits(expected)
    return expected.bits()


def same_bits_over_nccl(demo: Demo) -> Facts:
    expected = demo.train("--device cuda --gpu-collectives host")
    for stage in STAGES:
        demo.train(f"--device cuda --gpu-collectives nccl --zero {stage}").expect_same_bits(expected)
    return expected.bits()


def same_bits_replayed(demo: Demo) -> Facts:
    expected = demo.train("--device cuda --gpu-collectives nccl")
    for flags in ("--gpu-collectives nccl --zero 0", "--gpu-collectives nccl --zero 3"):
        demo.train(f"--device cuda --cuda-graph {flags}").expect_same_bits(expected)
    return expected.bits()


def losses_near_the_cpu(demo: Demo) -> Facts:
    return compare_losses(demo, "", TOLERANCE[demo.dtype])


def losses_near_the_cpu_in_tf32(demo: Demo) -> Facts:
    return compare_losses(demo, "--tf32", TF32_TOLERANCE)


def compare_losses(demo: Demo, gpu_flags: str, tolerance: float) -> Facts:
    cpu = demo.train("--device cpu").losses
    gpu = demo.train(f"--device cuda --gpu-collectives host {gpu_flags}").losses
    if None in cpu + gpu:
        raise CheckFailed(f"a loss is not finite: GPU {gpu}, CPU {cpu}")
    largest = max(abs(ours / theirs - 1) for ours, theirs in zip(gpu, cpu))
    if len(gpu) != len(cpu) or largest > tolerance:
        raise CheckFailed(f"losses are {largest:.1e} apart, expected at most {tolerance:g}: GPU {gpu}, CPU {cpu}")
    return {"largest_difference": largest, "tolerance": tolerance, "gpu": gpu, "cpu": cpu}


def two_ranks_over_nccl(demo: Demo) -> Facts:
    """With a GPU for each the same bits; on one GPU, which NCCL does not allow, the error that says so."""
    flags = "--device cuda --gpu-collectives nccl --ranks 2"
    if len(find_gpus()) > 1:
        expected = demo.train("--device cuda --gpu-collectives nccl")
        for stage in STAGES:
            demo.train(f"{flags} --zero {stage}").expect_same_bits(expected)
        return expected.bits()
    done = demo.run.execute(demo.command(flags))
    expect_refused(done.exit_code, done.output, r"share the GPU .*, which NCCL does not allow")
    return {"refused": "two ranks share the GPU"}


def expect_refused(exit_code: int, output: str, message: str) -> "re.Match[str]":
    """Before the first step, with this message."""
    match = re.search(message, output, re.DOTALL)
    if match is None:
        raise ProgramFailed(f"exit code {exit_code}; expected an error like {message!r}")
    if exit_code == 0 or re.search(r"^step \d", output, re.MULTILINE):
        raise ProgramFailed(f"exit code {exit_code}; expected an error before the first step")
    return match


# ---- tests of ours


def op_checks() -> List[Check]:
    """Each op in a process of its own: a kernel that faults takes the whole process with it."""
    return checks_by_op("ops", lambda tests: lambda run: run_tests(run, "op_suite_gpu_test", {"GTEST_FILTER": tests}))


def checks_by_op(prefix: str, check_of: Callable[[str], Callable[[CheckRun], Facts]]) -> List[Check]:
    """One that says why, where the op suite cannot be asked for its tests."""
    needed = ("op_suite_gpu_test",)
    if not has_program("op_suite_gpu_test"):
        return [Check(prefix, check_of("*"), needed)]
    try:
        return [Check(f"{prefix}.{op}", check_of(":".join(tests)), needed) for op, tests in tests_by_op().items()]
    except CheckFailed as failed:
        return [Check(prefix, failing(str(failed)), needed)]


def failing(reason: str) -> Callable[[CheckRun], Facts]:
    def run(_: CheckRun) -> Facts:
        raise CheckFailed(reason)

    return run


@functools.lru_cache(maxsize=None)
def tests_by_op() -> Dict[str, List[str]]:
    """The tests of the op suite; those of no op by the name of their suite."""
    command = [program("op_suite_gpu_test"), "--gtest_list_tests"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CheckFailed(f"op_suite_gpu_test --gtest_list_tests: {error}") from error
    tests: Dict[str, List[str]] = {}
    suite = ""
    for line in listing.stdout.splitlines():
        if line.startswith("  "):
            test = line.split()[0]
            tests.setdefault(test.partition("/")[2] or suite[:-1], []).append(suite + test)
        else:
            suite = line
    if listing.returncode != 0 or not tests:
        raise CheckFailed(f"op_suite_gpu_test --gtest_list_tests: exit code {listing.returncode}, {len(tests)} ops: "
                          f"{listing.stderr.strip()}")
    return tests


def run_tests(run: CheckRun, name: str, which: Dict[str, str]) -> Facts:
    """Some of the tests of a GoogleTest program, at least one; its variables say which."""
    output = run.execute_well([program(name), "--gtest_brief=1"], which)
    passed = re.search(r"^\[  PASSED  \] ([1-9]\d*) test", output, re.MULTILINE)
    if passed is None:
        raise ProgramFailed(f"{name}: it ran no test")
    return {"tests": int(passed.group(1))}


def stage_checks() -> List[Check]:
    def check_of(shard: int) -> Callable[[CheckRun], Facts]:
        which = {"GTEST_TOTAL_SHARDS": str(NUM_SHARDS), "GTEST_SHARD_INDEX": str(shard)}
        return lambda run: run_tests(run, "stages_gpu_test", which)

    return [Check(f"stages.{shard}", check_of(shard), ("stages_gpu_test",)) for shard in range(NUM_SHARDS)]


# ---- memory


def check_out_of_memory(run: CheckRun) -> Facts:
    """Stage 0 of a GPT on two ranks, larger than the GPU: refused with what is missing and the stage that would fit."""
    channels, bytes_per_parameter = 4096, 16  # f32 with AdamW: parameter, gradient, two of optimizer state
    block_bytes = 12 * channels * channels * bytes_per_parameter
    layers = int(OVERSIZE * find_gpus()[0].memory_bytes / block_bytes) + 1
    done = run.execute([program("gpt"), "--layers", str(layers), "--heads", "32", "--embd", str(channels),
                        "--context", "16", "--batch", "1", "--steps", "1", "--data", str(write_text(run.folder)),
                        "--device", "cuda", "--gpu-collectives", "host", "--ranks", "2", "--zero", "0"])
    refused = expect_refused(done.exit_code, done.output,
                             r"(\d+) bytes are missing;.*hint: stage (\d) needs about [^\n]*, which would fit")
    return {"layers": layers, "missing_bytes": int(refused.group(1)), "stage_that_would_fit": int(refused.group(2))}


def sanitizer_checks(tool: str) -> List[Check]:
    """compute-sanitizer on the first test of each op, which has all its shapes and types."""
    sanitizer = find_sanitizer()
    if sanitizer is None:
        return [Check(tool, skipping("there is no compute-sanitizer in CUDA_PATH/bin, /usr/local/cuda*/bin or PATH"))]
    command = [sanitizer, "--tool", tool, "--target-processes", "all", "--error-exitcode", "99"]
    return checks_by_op(tool, lambda tests: lambda run: sanitize(run, command, tests.partition(":")[0]))


def skipping(reason: str) -> Callable[[CheckRun], Facts]:
    def run(_: CheckRun) -> Facts:
        raise CheckSkipped(reason)

    return run


def sanitize(run: CheckRun, command: List[str], test: str) -> Facts:
    output = run.execute_well([*command, program("op_suite_gpu_test"), "--gtest_brief=1", f"--gtest_filter={test}"])
    summary = re.search(r"SUMMARY: 0 (errors|hazards).*", output)
    if summary is None or "[  PASSED  ] 1 test" not in output:
        raise ProgramFailed("compute-sanitizer: expected a test that passed, and a summary without errors")
    return {"test": test, "summary": summary.group(0)}


# ---- speed


def check_kernel_bench(run: CheckRun) -> Facts:
    return {"table": run.execute_well([program("cuda_kernel_bench")]).splitlines()}


def compare_with_torch(run: CheckRun, json_path: Path) -> Facts:
    script = ROOT / "tools/bench/gpu/compare_with_torch_gpu.py"
    output = run.execute_well([sys.executable, str(script), "--gpt", program("gpt"), "--stages", "0,3",
                               "--rounds", "1", "--json", str(json_path)])
    skipped = re.search(r"^SKIPPED: (.*)", output, re.MULTILINE)
    if skipped is not None:
        raise CheckSkipped(skipped.group(1))
    return {"summary": json.loads(json_path.read_text())["summary"]}
