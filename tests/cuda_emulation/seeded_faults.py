#!/usr/bin/env python3
"""seeded_faults.py [NAME...]: whether the emulated device notices faults in kernels.

Compiles copies of framework/kernels/cuda, each with one fault, links the op suite with it and runs the tests of the
ops that the fault is in. Prints one line per fault, and fails unless at most one in twenty is missed. Run it from the
root of the repository; takes about five minutes.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = "framework/kernels/cuda/"
TARGET = "//tests/cuda_emulation:op_suite_emulated_test"
FLAGS = ["--config=werror", "--noshow_progress"]

TENSOR_CORE = "attention_tensor_core.cuh"
TENSOR_CORE_GRAD = "attention_tensor_core_grad.cuh"
TILES = "attention_tiles.cuh"
ATTENTION = ("attention.cu", "*attention*")

# Name: (file, what stands there, the fault, (source to compile, tests to run)). The text must stand there once, or as
# often as a number before it says: "2:text" is its second place.
FAULTS = {
    "missing barrier before a product": (TENSOR_CORE, "    WaitForCopies<1>();\n    __syncthreads();\n    float scores",
                                         "    WaitForCopies<1>();\n    float scores", ATTENTION),
    "missing barrier after a tile": (TENSOR_CORE_GRAD, "    work(begin, stage);\n    __syncthreads();",
                                     "    work(begin, stage);", ATTENTION),
    "missing wait": (TENSOR_CORE, "    WaitForCopies<0>();\n    __syncthreads();\n    if (begin",
                     "    __syncthreads();\n    if (begin", ATTENTION),
    "wait for one group less": (TENSOR_CORE_GRAD, "      CommitCopies();\n      WaitForCopies<1>();\n    } else",
                                "      CommitCopies();\n      WaitForCopies<2>();\n    } else", ATTENTION),
    "missing commit": (TENSOR_CORE_GRAD, "  load(begin, 0);\n  CommitCopies();", "  load(begin, 0);", ATTENTION),
    "swapped fragment": (TENSOR_CORE, "1:  b[0][1] = matrices[1];\n  b[1][0] = matrices[2];",
                         "  b[0][1] = matrices[2];\n  b[1][0] = matrices[1];", ATTENTION),
    "wrong mask": ("attention_rows.cuh", "key <= query", "key <= query + 1", ATTENTION),
    "wrong mask of keys": (TENSOR_CORE, "n * 8 + i >= seen", "n * 8 + i > seen", ATTENTION),
    "wrong mask of queries": (TENSOR_CORE_GRAD, "n * 8 + i < hidden", "n * 8 + i <= hidden", ATTENTION),
    "mask skipped one tile too early": (TENSOR_CORE, "|| last <= first_query",
                                        "|| last - kTiles * 8 <= first_query", ATTENTION),
    "blocks without a head": (TENSOR_CORE, "  if (at.batch >= shape.batch) return;\n", "", ATTENTION),
    "every group of heads is the first": (
        "attention_rows.cuh", "blockIdx.z * gridDim.x + blockIdx.x", "blockIdx.x", ATTENTION),
    "one dot too many": ("attention_dot.cuh", "lane == 0 && is_inside", "lane == 0", ATTENTION),
    "one row too many read": (TENSOR_CORE, "step < rows_inside", "step <= rows_inside", ATTENTION),
    "one row too many written": (TENSOR_CORE, "    if (position >= rows.positions) continue;",
                                 "    if (position > rows.positions) continue;", ATTENTION),
    "missing bound of a row's statistics": (TENSOR_CORE_GRAD, "  if (query >= shape.queries) return {0.0f, 0.0f};\n", "",
                                            ATTENTION),
    "shared memory of one row less": ("attention.cu", "2 * kRowsOfBlock + 2 * kStages<size()> * 64",
                                      "2 * kRowsOfBlock + 2 * kStages<size()> * 64 - 1", ATTENTION),
    "missing barrier between two uses of a tile": (
        TILES, "      AddWeightedRows<kTile, kSize, true>(weights, douts, dv);\n      __syncthreads();",
        "      AddWeightedRows<kTile, kSize, true>(weights, douts, dv);", ATTENTION),
    "tensor cores for rows that are not aligned": ("attention.cu", "shape.head_size % 8 == 0 && ", "", ATTENTION),
    "missing bound of a pack": ("packs.cuh", "1:  if (begin + kPack <= num_elements)", "  if (begin < num_elements)",
                                ("cast.cu", "*cast*")),
    "misaligned pack": ("embedding.cu", "shape_.columns % kPack == 0 && ", "", ("embedding.cu", "*embedding*")),
    "missing barrier after a preparation": ("packs.cuh", "prepared = body.Prepare();\n  __syncthreads();",
                                            "prepared = body.Prepare();", ("dropout.cu", "*dropout*")),
    "missing barrier before the next sum": ("reduce.cuh", "  __syncthreads();  // before", "  // before",
                                            ("gradient_norm.cu", "*square_sum*")),
    "half a warp's sum": ("reduce.cuh", "1:int distance = kLanes / 2", "int distance = kLanes / 4",
                          ("rms_norm.cu", "*rms_norm*")),
    "barrier that some threads skip": ("losses.cu", "  if (threadIdx.x == 0) {\n    shared_scale",
                                       "  if (threadIdx.x >= columns) return;\n  if (threadIdx.x == 0) {\n"
                                       "    shared_scale", ("losses.cu", "*cross_entropy*")),
    "missing elements behind the packs": ("losses.cu", "int64_t i = tail + threadIdx.x;",
                                          "int64_t i = tail + 1 + threadIdx.x;", ("losses.cu", "*cross_entropy*")),
    "difference of infinities": ("losses.cu", "maximum == -INFINITY ? 0.0f : maximum", "maximum",
                                 ("losses.cu", "*cross_entropy*")),
    "missing barrier in a scan": ("embedding.cu", "sums[thread - distance] : 0;\n    __syncthreads();",
                                  "sums[thread - distance] : 0;", ("embedding.cu", "*embedding*")),
    "workspace of one word less": ("embedding.cu", "(2 * shape_.rows + 1 + 2 * shape_.num_ids)",
                                   "(2 * shape_.rows + 2 * shape_.num_ids)", ("embedding.cu", "*embedding*")),
    "positions in the order of threads": ("embedding.cu", "    place += lists.unordered[other] < position;",
                                          "    place += other < slot;", ("embedding.cu", "*embedding*")),
    "input overwritten before it is read": (
        "layer_norm.cu", "__global__ void LayerNormGradKernel(LayerNormGradArrays<T> arrays, MatrixShape shape) {\n",
        "__global__ void LayerNormGradKernel(LayerNormGradArrays<T> arrays, MatrixShape shape) {\n"
        "  arrays.dx[0] = T{};\n", ("layer_norm.cu", "*layer_norm*")),
    "wrong leading dimension": ("matmul.cc", "DataType(dtype), columns, rows, columns)",
                                "DataType(dtype), columns, rows, rows)", ("matmul.cc", "*linear*")),
    "wrong leading dimension of aux": ("matmul.cc", "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape_.columns",
                                       "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape_.rows",
                                       ("matmul.cc", "*linear*")),
    "misaligned workspace": ("matmul.cc", "kWorkspaceAlignment = 256;", "kWorkspaceAlignment = 64;",
                             ("matmul.cc", "*linear*")),
    "algorithm for aligned operands only": ("matmul.cc", "is_aligned ? aligned_ : unaligned_", "aligned_",
                                            ("matmul.cc", "*linear*")),
    "optimizer reads a state that is not there": ("optimizer.cu", "constexpr int kStates = 0;",
                                                  "constexpr int kStates = 1;", ("optimizer.cu", "*sgd*")),
}
MISSED_AT_MOST = len(FAULTS) // 20


def run(command, **kwargs):
    return subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)


def checked(command, **kwargs):
    done = run(command, **kwargs)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)[:2000]}\n{done.stdout}{done.stderr}")
    return done.stdout


class Build:
    """How Bazel compiles the kernels and links the test."""

    def __init__(self):
        checked(["bazel", "build", *FLAGS, TARGET])
        self.root = pathlib.Path(os.path.realpath("bazel-bin").partition("/bazel-out/")[0])
        actions = json.loads(checked(["bazel", "aquery", *FLAGS, "--output=jsonproto",
                                      'mnemonic("CppCompile", //tests/cuda_emulation:kernels)']))
        self.compile = {}
        for action in actions["actions"]:
            arguments = action["arguments"]
            source = arguments[arguments.index("-c") + 1]
            if ".pic.o" not in " ".join(arguments):
                self.compile[os.path.basename(source)] = arguments
        self.link = pathlib.Path("bazel-bin/tests/cuda_emulation/op_suite_emulated_test-2.params").read_text().split("\n")

    def object(self, folder, source):
        arguments = list(self.compile[source])
        copy = folder / KERNELS / source
        arguments[arguments.index("-c") + 1] = str(copy if copy.exists() else pathlib.Path(KERNELS + source))
        output = folder / (source + ".o")
        arguments[arguments.index("-o") + 1] = str(output)
        arguments[1:1] = ["-iquote", str(folder)]
        arguments.append("-Wno-error")  # what a fault leaves unused
        if "-MF" in arguments:
            arguments[arguments.index("-MF") + 1] = str(folder / (source + ".d"))
        done = run(arguments, cwd=self.root)
        return output, done.stderr if done.returncode else ""

    def program(self, folder, objects):
        link = list(self.link)
        link[link.index("-o") + 1] = str(folder / "test")
        (folder / "params").write_text("\n".join(link))
        checked(["g++", *map(str, objects), f"@{folder / 'params'}"], cwd=self.root)
        return folder / "test"


def with_fault(text, place, fault):
    """The text with its `place` replaced: "2:place" is the second of several."""
    numbered = re.match(r"(\d):", place)
    number = int(numbered[1]) if numbered else 1
    place = place[2:] if numbered else place
    parts = text.split(place)
    if len(parts) < number + 1 or (numbered is None and len(parts) != 2):
        sys.exit(f"stands {len(parts) - 1} times: {place}")
    return place.join(parts[:number]) + fault + place.join(parts[number:])


def try_fault(build, name):
    """(caught, how)"""
    file, place, fault, (source, tests) = FAULTS[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        copy = folder / KERNELS / file
        copy.parent.mkdir(parents=True)
        copy.write_text(with_fault(pathlib.Path(KERNELS + file).read_text(), place, fault))
        output, error = build.object(folder, source)
        if error:
            sys.exit(f"{name}: does not compile\n{error}")
        test = build.program(folder, [output])
        try:
            done = run([str(test), f"--gtest_filter={tests}", "--gtest_fail_fast"], timeout=300)
        except subprocess.TimeoutExpired:
            return False, "hangs"
        if done.returncode == 0:
            return False, "all tests passed"
        said = re.search(r"block \(.*|cuBLASLt: .*|CUDA: .*|^.*(?:IsClose|SameBits).*$", done.stdout, re.MULTILINE)
        return True, said[0] if said else done.stdout[-200:]


def main():
    names = sys.argv[1:] or list(FAULTS)
    build = Build()
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, (caught, how) in zip(names, pool.map(lambda name: try_fault(build, name), names)):
            print(f"{'caught' if caught else 'MISSED'}  {name}: {how}", flush=True)
            missed += not caught
    print(f"{len(names) - missed} of {len(names)} caught")
    sys.exit(1 if missed > MISSED_AT_MOST else 0)


if __name__ == "__main__":
    main()
