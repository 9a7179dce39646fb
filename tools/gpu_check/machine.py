"""The machine as gpu_check.py needs it: our programs, CUDA's libraries, the GPUs."""

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, List, Optional

from check_runner import Hopeless

ROOT = Path(__file__).resolve().parents[2]  # of the bundle or of the source tree
IS_BUNDLE = (ROOT / ".zerograph_bundle").exists()
TARGETS = {
    "gpt": "//models/gpt:gpt",
    "recipe": "//models/recipe:recipe",
    "classifier": "//models/classifier:classifier",
    "llama": "//models/llama:llama",
    "resnet": "//models/resnet:resnet",
    "op_suite_gpu_test": "//tests/gpu:op_suite_gpu_test",
    "stages_gpu_test": "//tests/gpu:stages_gpu_test",
    "cuda_kernel_bench": "//tools/bench/gpu:cuda_kernel_bench",
}
LIBRARIES = ("libcublasLt.so.1[0-9]", "libnccl.so.2")  # that our programs load when they need them
NVIDIA_SMI_TIMEOUT_S = 60


# ---- our programs


def program(name: str) -> str:
    """In a bundle its launcher; in the source tree what Bazel builds."""
    return str(ROOT / name if IS_BUNDLE else ROOT / "bazel-bin" / TARGETS[name][2:].replace(":", "/"))


def has_program(name: str) -> bool:
    return shutil.which(program(name)) is not None


def how_to_get(names: Iterable[str]) -> str:
    if IS_BUNDLE:
        return "make the bundle with tools/bundle.sh --gpu-check"
    return "bazel build -c opt " + " ".join(TARGETS[name] for name in names)


def programs_sha256() -> str:
    """The hash of all programs that exist: results of one build say nothing about another build."""
    digest = hashlib.sha256()
    for name in TARGETS:
        inside = sorted((ROOT / "programs" / name).rglob(name))  # a bundle's launchers are the same for every build
        for path in [Path(program(name)), *inside]:
            if path.is_file():
                digest.update(path.read_bytes())
    return digest.hexdigest()


# ---- CUDA's


def cuda_roots() -> List[Path]:
    roots = [Path(os.environ["CUDA_PATH"])] if os.environ.get("CUDA_PATH") else []
    return roots + sorted(Path("/usr/local").glob("cuda*"))


def library_folders() -> List[Path]:
    """Where to look, in this order. PyTorch's folders come first: it needs its own libraries, our programs take any."""
    named = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    wheels = [lib for entry in sys.path if entry for lib in sorted(Path(entry).glob("nvidia/*/lib"))]
    toolkits = [root / "lib64" for root in cuda_roots()]
    system = [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64")]
    return named + wheels + toolkits + system


def find_libraries() -> Dict[str, str]:
    """The first file of each name, such as libcublasLt.so.13."""
    found: Dict[str, str] = {}
    for folder in library_folders():
        for pattern in LIBRARIES:
            for path in folder.glob(pattern):
                found.setdefault(path.name, str(path))
    return found


def add_to_library_path(libraries: Iterable[str]) -> None:
    """Sets the environment of all programs that start from here."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":") + [str(Path(file).parent) for file in libraries]
    os.environ["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys(folder for folder in folders if folder))


def find_tool(name: str) -> Optional[str]:
    """The path of a tool of the CUDA toolkit, such as ncu; None if it is missing."""
    places = [str(root / folder) for folder in ("bin", name) for root in cuda_roots()]
    return shutil.which(name, path=":".join([*places, os.environ.get("PATH", "")]))


# ---- the GPUs


@dataclass(frozen=True)
class Gpu:
    name: str
    driver: str
    memory_bytes: int


def find_gpus() -> List[Gpu]:
    """At least one GPU, in the order of nvidia-smi."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=NVIDIA_SMI_TIMEOUT_S)
    except FileNotFoundError as error:
        raise Hopeless("there is no nvidia-smi on PATH: this machine has no NVIDIA driver") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Hopeless(f"nvidia-smi: {error}") from error
    if done.returncode != 0:
        raise Hopeless(f"nvidia-smi: exit code {done.returncode}: {(done.stdout + done.stderr).strip()}")
    gpus = []
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 3 or not fields[2].isdigit():
            raise Hopeless(f"nvidia-smi: got {line!r}, expected a GPU's name, driver and MiB of memory")
        gpus.append(Gpu(fields[0], fields[1], int(fields[2]) << 20))
    if not gpus:
        raise Hopeless("nvidia-smi shows no GPU")
    return gpus
