"""The checks of gpu_check.py, in their order: the most informative ones run in the first minutes."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List

from check_runner import Check, CheckFailed, CheckRun, CheckSkipped, Facts, ProgramFailed
from demo_checks import expect_refused, first_demo_checks, other_demo_checks, write_text
from full_size import check_bits, check_gemm_choices, check_loss_parity
from machine import LIBRARIES, find_gpus, find_libraries, find_tool, has_program, library_folders, program
from speed_checks import first_speed_checks, last_speed_checks

NUM_SHARDS = 9  # the test of stages has nine settings
OVERSIZE = 1.2  # times the GPU's memory
# Kernels that write to computed addresses: a bad access is likeliest in these.
FIRST_SANITIZED = re.compile(r"(attention|softmax|linear|layer_norm)\w*")
NO_SANITIZER = re.compile(r"Device not supported.*")  # compute-sanitizer's message in some virtual machines


def all_checks(output: Path) -> List[Check]:
    memcheck = sanitizer_checks("memcheck")
    return [
        # A first call of ten minutes,
        Check("environment", check_environment, alone=True),
        *op_checks(),
        *first_demo_checks(),
        *first_speed_checks(output),
        Check("full_size.bits", check_bits, ("gpt",), alone=True, normal_s=60),
        Check("full_size.loss_parity", check_loss_parity, ("gpt",), alone=True, normal_s=40),
        *[check for check in memcheck if is_sanitized_first(check)],
        # a second,
        *stage_checks(),
        *other_demo_checks(),
        Check("full_size.gemm_choices", check_gemm_choices, ("gpt",), alone=True, normal_s=50),
        Check("out_of_memory", check_out_of_memory, ("gpt",), alone=True, normal_s=20),
        *last_speed_checks(output),
        # and more.
        *[check for check in memcheck if not is_sanitized_first(check)],
        *sanitizer_checks("racecheck"),
    ]


# ---- the machine


def check_environment(run: CheckRun) -> Facts:
    gpus = find_gpus()
    run.execute_well(["nvidia-smi"])  # for the log: the driver's CUDA version, other users of the GPU
    libraries = find_libraries()
    for pattern in LIBRARIES:
        if not any(Path(name).match(pattern) for name in libraries):
            looked = ", ".join(str(folder) for folder in library_folders())
            raise CheckFailed(f"there is no {pattern} in {looked}; add its folder to LD_LIBRARY_PATH")
    # The full names contain the versions, on which bits depend.
    return {"gpus": [vars(gpu) for gpu in gpus], "python": sys.version, "processors": os.cpu_count(),
            "libraries": {name: os.path.realpath(path) for name, path in libraries.items()}}


# ---- our tests


def op_checks() -> List[Check]:
    """Runs each op in a process of its own: a kernel that faults ends the whole process."""
    return checks_by_op("ops", lambda tests: lambda run: run_tests(run, "op_suite_gpu_test", {"GTEST_FILTER": tests}))


def checks_by_op(prefix: str, check_of: Callable[[str], Callable[[CheckRun], Facts]],
                 normal_s: float = 3) -> List[Check]:
    """One check for each op, or a single one that reports why the op suite cannot list its tests."""
    needed = ("op_suite_gpu_test",)
    if not has_program("op_suite_gpu_test"):
        return [Check(prefix, check_of("*"), needed)]
    try:
        return [Check(f"{prefix}.{op}", check_of(":".join(tests)), needed, normal_s=normal_s)
                for op, tests in tests_by_op().items()]
    except CheckFailed as failed:
        return [Check(prefix, failing(str(failed)), needed)]


def failing(reason: str) -> Callable[[CheckRun], Facts]:
    def run(_: CheckRun) -> Facts:
        raise CheckFailed(reason)

    return run


@functools.lru_cache(maxsize=None)
def tests_by_op() -> Dict[str, List[str]]:
    """The tests of the op suite by op; tests of no op by the name of their suite."""
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
    """Runs some of the tests of a GoogleTest program, at least one, selected by its environment variables."""
    output = run.execute_well([program(name), "--gtest_brief=1"], which)
    passed = re.search(r"^\[  PASSED  \] ([1-9]\d*) test", output, re.MULTILINE)
    if passed is None:
        raise ProgramFailed(f"{name}: it ran no test")
    return {"tests": int(passed.group(1))}


def stage_checks() -> List[Check]:
    def check_of(shard: int) -> Callable[[CheckRun], Facts]:
        which = {"GTEST_TOTAL_SHARDS": str(NUM_SHARDS), "GTEST_SHARD_INDEX": str(shard)}
        return lambda run: run_tests(run, "stages_gpu_test", which)

    return [Check(f"stages.{shard}", check_of(shard), ("stages_gpu_test",), ranks=2, normal_s=20)
            for shard in range(NUM_SHARDS)]


# ---- memory


def check_out_of_memory(run: CheckRun) -> Facts:
    """A GPT larger than the GPU, on two ranks at stage 0: the error names the missing bytes and a stage that fits."""
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
    """Runs compute-sanitizer on the first test of each op, which has all its shapes and types."""
    sanitizer = find_tool("compute-sanitizer")
    if sanitizer is None:
        return [Check(tool, skipping("there is no compute-sanitizer in CUDA_PATH/bin, /usr/local/cuda*/bin or PATH"))]
    command = [sanitizer, "--tool", tool, "--target-processes", "all", "--error-exitcode", "99"]
    return checks_by_op(tool, lambda tests: lambda run: sanitize(run, command, tests.partition(":")[0]), normal_s=15)


def is_sanitized_first(check: Check) -> bool:
    return FIRST_SANITIZED.fullmatch(check.name.partition(".")[2]) is not None


def skipping(reason: str) -> Callable[[CheckRun], Facts]:
    def run(_: CheckRun) -> Facts:
        raise CheckSkipped(reason)

    return run


def sanitize(run: CheckRun, command: List[str], test: str) -> Facts:
    test_command = [program("op_suite_gpu_test"), "--gtest_brief=1", f"--gtest_filter={test}"]
    done = run.execute([*command, *test_command])
    unsupported = NO_SANITIZER.search(done.output)
    if unsupported is not None:
        raise CheckSkipped(f"compute-sanitizer: {unsupported.group(0)}")
    if done.exit_code != 0:
        raise ProgramFailed(f"compute-sanitizer: exit code {done.exit_code}")
    output = done.output
    summary = re.search(r"SUMMARY: 0 (errors|hazards).*", output)
    if summary is None or "[  PASSED  ] 1 test" not in output:
        raise ProgramFailed("compute-sanitizer: expected a test that passed, and a summary without errors")
    return {"test": test, "summary": summary.group(0)}
