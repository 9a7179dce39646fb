"""Checks that train the demos, small, in every way that must give the same bits, and near the CPU."""

import gzip
import json
import random
import re
from pathlib import Path
from typing import Callable, Dict, List, Optional

from check_runner import Check, CheckFailed, CheckRun, Facts, ProgramFailed
from machine import find_gpus, program

DTYPES = ("bf16", "f32", "f16")
STAGES = ("0", "1", "2", "3")
MODELS = {  # flags that make a demo small, and give it several buckets
    "gpt": ["--layers", "2", "--heads", "2", "--embd", "128", "--context", "128", "--batch", "4", "--dropout", "0.1",
            "--clip-norm", "1", "--warmup-steps", "1", "--eval-windows", "4", "--sample-tokens", "8"],
    "recipe": ["--layers", "4", "--width", "256", "--lr", "1e-4"],  # its own rate leaves the range of 16 bits
    "classifier": ["--batch", "32"],
    "llama": ["--context", "64", "--batch", "2", "--eval-windows", "4", "--sample-tokens", "0"],
    "resnet": ["--batch", "16", "--lr", "1e-3", "--no-augment"],
}
READ_TEXT = ("gpt", "llama")
NUM_IMAGES = {"train": 256, "t10k": 64}
MICRO_BATCHES = 2  # computed by one rank or two
STEPS = 4
# The relative tolerance of a loss in the first steps: a GPU sums in another order.
TOLERANCE = {"f32": 1e-4, "bf16": 2e-2, "f16": 5e-3}
TF32_TOLERANCE = TOLERANCE["f16"]  # TF32 has as many bits of mantissa


def first_demo_checks() -> List[Check]:
    """The most informative checks."""
    return [check for check in demo_checks() if is_first(check.name)]


def other_demo_checks() -> List[Check]:
    return [check for check in demo_checks() if not is_first(check.name)]


def is_first(name: str) -> bool:
    return name.startswith("demo.gpt.bf16.") or name == "demo.gpt.f32.near_cpu"


def demo_checks() -> List[Check]:
    kinds: Dict[str, Callable[["Demo"], Facts]] = {
        "host": same_bits_through_the_host,
        "peer": same_bits_by_peer_memory,
        "nccl": same_bits_over_nccl,
        "graph": same_bits_replayed,
        "near_cpu": losses_near_the_cpu,
    }
    checks = [demo_check(f"demo.{model}.{dtype}.{kind}", model, dtype, function)
              for model in MODELS for dtype in DTYPES for kind, function in kinds.items()]
    return [demo_check("demo.gpt.f32.two_ranks_over_nccl", "gpt", "f32", two_ranks_over_nccl),
            demo_check("demo.gpt.f32.tf32", "gpt", "f32", losses_near_the_cpu_in_tf32), *checks]


def demo_check(name: str, model: str, dtype: str, function: Callable[["Demo"], Facts]) -> Check:
    return Check(name, lambda run: function(Demo(run, model, dtype)), (model,), ranks=2, normal_s=10)


class Demo:
    """Trains a demo with this number type."""

    def __init__(self, run: CheckRun, model: str, dtype: str) -> None:
        self.run = run
        self.dtype = dtype
        self._command = [program(model), *MODELS[model], "--dtype", dtype, "--micro-batches", str(MICRO_BATCHES),
                         "--steps", str(STEPS), "--bucket-mb", "0.25", "--timeout", "100"]
        if model in READ_TEXT:
            self._command += ["--data", str(write_text(run.folder))]
        elif model == "resnet":
            self._command += ["--data", str(write_images(run.folder))]

    def command(self, flags: str) -> List[str]:
        return [*self._command, *flags.split()]

    def train(self, flags: str, environment: Optional[Dict[str, str]] = None) -> "Training":
        """Runs the demo to its end; its plan must equal its measurement."""
        path = self.run.folder / "report.json"
        self.run.execute_well([*self.command(flags), "--report", str(path)], environment)
        training = Training(flags, json.loads(path.read_text()))
        path.unlink()
        training.expect_plan_measured()
        return training


def write_text(folder: Path) -> Path:
    """Random words, always the same."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 6))) for _ in range(50)]
    path = folder / "text.txt"
    path.write_text(" ".join(draw.choices(words, k=12000)))
    return path


def write_images(folder: Path) -> Path:
    """Random images, always the same, in the files of Fashion-MNIST."""
    draw = random.Random(1)
    for part, count in NUM_IMAGES.items():
        sizes = b"".join(size.to_bytes(4, "big") for size in (count, 28, 28))
        pixels = draw.getrandbits(8 * count * 28 * 28).to_bytes(count * 28 * 28, "big")
        labels = bytes(draw.randrange(10) for _ in range(count))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x03" + sizes + pixels))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x01" + sizes[:4] + labels))
    return folder


class Training:
    """The contents of a report."""

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
    """Trains on one rank first, the plainest run; then on two ranks, which may share the GPU."""
    expected = demo.train("--device cuda --gpu-collectives host")
    for stage in STAGES:
        demo.train(f"--device cuda --gpu-collectives host --ranks 2 --zero {stage}").expect_same_bits(expected)
    return expected.bits()


def same_bits_by_peer_memory(demo: Demo) -> Facts:
    """Trains on two ranks, which may share the GPU and map each other's memory: queued step by step, and replayed; with
    collectives between the kernels, and beside them.
    """
    expected = demo.train("--device cuda --gpu-collectives host")
    flags = "--device cuda --gpu-collectives peer --ranks 2"
    for stage in STAGES:
        demo.train(f"{flags} --zero {stage}").expect_same_bits(expected)
    for stage in ("0", "3"):
        demo.train(f"{flags} --cuda-graph --zero {stage}").expect_same_bits(expected)
        demo.train(f"{flags} --overlap unlimited --zero {stage}").expect_same_bits(expected)
    demo.train(f"{flags} --overlap unlimited --cuda-graph --zero 3").expect_same_bits(expected)
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
    """With a GPU for each rank, the bits must be the same. On one GPU the program must say why it cannot run; then, as
    only a test may, the ranks get the same bits through sockets. NCCL itself refuses ranks of one host on one GPU, so
    each rank gets a host name of its own.
    """
    flags = "--device cuda --gpu-collectives nccl --ranks 2"
    shared = len(find_gpus()) == 1
    environment = {"ZG_TEST_SHARED_GPU": "1", "NCCL_SOCKET_IFNAME": "lo"} if shared else {}
    if shared:
        done = demo.run.execute(demo.command(flags))
        expect_refused(done.exit_code, done.output, r"share the GPU .*, which NCCL does not allow")
    expected = demo.train("--device cuda --gpu-collectives nccl")
    for stage in STAGES:
        demo.train(f"{flags} --zero {stage}", environment).expect_same_bits(expected)
    return {"shared": shared, **expected.bits()}


def expect_refused(exit_code: int, output: str, message: str) -> "re.Match[str]":
    """The program must fail before the first step, with this message."""
    match = re.search(message, output, re.DOTALL)
    if match is None:
        raise ProgramFailed(f"exit code {exit_code}; expected an error like {message!r}")
    if exit_code == 0 or re.search(r"^step \d", output, re.MULTILINE):
        raise ProgramFailed(f"exit code {exit_code}; expected an error before the first step")
    return match


