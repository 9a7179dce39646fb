#!/usr/bin/env python3
"""seeded_faults.py [NAME...]: whether the emulated device notices faults in kernels.

Compiles copies of framework/kernels/cuda, each with one fault, links the op suite with it and runs the tests of the
ops that the fault is in; and copies of framework/comm/cuda, with the tests of the collectives. Prints one line per
fault, and fails where more than one in twenty is missed, or where a fault cannot be tried because the sources have
changed: seeded_faults_test finds that without a build. Run it from the root of the repository; takes about ten minutes.
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
COLLECTIVES = "framework/comm/cuda/"
# By folder: the test, and the libraries that compile the folder's sources for the emulated device.
PROGRAMS = {KERNELS: ("op_suite_emulated_test", ("kernels",)),
            COLLECTIVES: ("cuda_peers_emulated_test", ("fold_peers", "cuda_peers"))}
PACKAGE = "//tests/cuda_emulation:"
FLAGS = ["--config=werror", "--noshow_progress"]

TENSOR_CORE = "attention_tensor_core.cuh"
TENSOR_CORE_GRAD = "attention_tensor_core_grad.cuh"
TILES = "attention_tiles.cuh"
ATTENTION = ("attention.cu", "*attention*")
WARPGROUP = "attention_warpgroup.cu"
WARPGROUPS = (WARPGROUP, "*attention*")
CTC = "ctc_loss.cu"
TEXTS = (CTC, "*ctc*")

# Name: (file, original text, faulty text, (source to compile, tests to run)). The file must contain the original text
# once; a number before it selects an occurrence: "2:text" is the second.
FAULTS = {
    "missing barrier before a product": (TENSOR_CORE, "    Tiles::ShowCopies();\n    __syncthreads();",
                                         "    Tiles::ShowCopies();", ATTENTION),
    "missing barrier after a tile": (TENSOR_CORE, "    work(begin, stage);\n    __syncthreads();",
                                     "    work(begin, stage);", ATTENTION),
    "missing wait": (TENSOR_CORE, "      WaitForCopies<0>();\n", "", ATTENTION),
    "wait for one group less": (TENSOR_CORE, "      CommitCopies();\n      WaitForCopies<1>();\n    } else",
                                "      CommitCopies();\n      WaitForCopies<2>();\n    } else", ATTENTION),
    "missing commit": (TENSOR_CORE, "  load(begin, 0);\n  CommitCopies();", "  load(begin, 0);", ATTENTION),
    "swapped fragment": (TENSOR_CORE, "1:    b[0][1] = matrices[1];\n    b[1][0] = matrices[2];",
                         "    b[0][1] = matrices[2];\n    b[1][0] = matrices[1];", ATTENTION),
    "missing barrier between the steps of a text": (CTC, "1:      }\n      __syncthreads();", "      }", TEXTS),
    "missing barrier before shares are added": (
        CTC, "log_likelihood);\n    }\n    __syncthreads();", "log_likelihood);\n    }", TEXTS),
    "missing barrier after shares are added": (CTC, "share * -dloss;\n    }\n    __syncthreads();",
                                               "share * -dloss;\n    }", TEXTS),
    "repeated labels without a blank": (CTC, "target.MaySkipTo(state) ? before", "state % 2 == 1 && state >= 3 ? before",
                                        TEXTS),
    "texts that end before their last blank": (CTC, "state >= num_states - 2 ?", "state >= num_states - 1 ?", TEXTS),
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
    "shared memory of one row less": ("attention_launch.cuh", "kQueryGradRows = 2 * kRowsOfBlock + 2 * kStages * 64",
                                      "kQueryGradRows = 2 * kRowsOfBlock + 2 * kStages * 64 - 1", ATTENTION),
    "missing barrier between two uses of a tile": (
        TILES, "      AddWeightedRows<kTile, kSize, true>(weights, douts, dv);\n      __syncthreads();",
        "      AddWeightedRows<kTile, kSize, true>(weights, douts, dv);", ATTENTION),
    "missing wait for scores": (TENSOR_CORE, "    Tiles::template Wait<0>(scores);\n", "", WARPGROUPS),
    "wait for one product too few": (TENSOR_CORE_GRAD, "1:    Tiles::template Wait<1>(weights);",
                                     "    Tiles::template Wait<2>(weights);", WARPGROUPS),
    "copies that products do not see": (WARPGROUP, "{ ShowToProducts(); }", "{}", WARPGROUPS),
    "products that do not wait for registers": (WARPGROUP, "1:    BeginProducts();\n", "", WARPGROUPS),
    "packs that are not swizzled": ("warpgroup_core.cuh", "(pack ^ (row % 8))", "pack", WARPGROUPS),
    "rows of another product": (WARPGROUP, "first + k * kDescriptorOf16Rows", "first + (k ^ 1) * kDescriptorOf16Rows",
                                WARPGROUPS),
    "a product that forgets the sums before": (WARPGROUP, "k > 0, products", "k > 1, products", WARPGROUPS),
    "tensor cores for rows that are not aligned": ("attention.cu", "shape.head_size % 8 == 0 && ", "", ATTENTION),
    "missing bound of a pack": ("packs.cuh", "is_aligned && end <= num_elements", "is_aligned && begin < num_elements",
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
    "missing elements behind the packs": ("class_rows.cuh", "int64_t i = tail + threadIdx.x;",
                                          "int64_t i = tail + 1 + threadIdx.x;", ("losses.cu", "*cross_entropy*")),
    "difference of infinities": ("class_rows.cuh", "maximum == -INFINITY ? 0.0f : maximum", "maximum",
                                 ("losses.cu", "*cross_entropy*")),
    "missing barrier before logits are overwritten": (
        "losses.cu", "  __syncthreads();  // before the logits are overwritten\n", "", ("losses.cu", "*with_grad*")),
    "shared memory of less than a row": ("losses.cu", "kept_bytes = row_bytes + 16;", "kept_bytes = row_bytes - 16;",
                                         ("losses.cu", "*with_grad*")),
    "missing barrier in a scan": ("embedding.cu", "sums[thread - distance] : 0;\n    __syncthreads();",
                                  "sums[thread - distance] : 0;", ("embedding.cu", "*embedding*")),
    "workspace of one word less": ("embedding.cu", "(2 * shape_.rows + 2 + 2 * shape_.num_ids + MaxLongRows())",
                                   "(2 * shape_.rows + 1 + 2 * shape_.num_ids + MaxLongRows())",
                                   ("embedding.cu", "*embedding*")),
    "positions in the order of threads": ("embedding.cu", "    place += lists.unordered[other] < position;",
                                          "    place += other < slot;", ("embedding.cu", "*embedding*")),
    "input overwritten before it is read": ("norm_grad.cuh", "  const int num_warps",
                                            "  arrays.dx[0] = T{};\n  const int num_warps",
                                            ("layer_norm.cu", "*layer_norm*")),
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
FOLD = ("fold_peers.cu", "*LeftFold*:*AddedUp*")
GROUP = ("cuda_peer_group.cc", "CudaPeersTest.*:*LeftFold*")
RENDEZVOUS = ("stream_rendezvous.cc", "CudaPeersTest.*:*DifferentCalls*")
COLLECTIVE_FAULTS = {
    "first rank's terms twice": ("fold_peers.cu", "(inputs.terms[next++], begin)", "(inputs.terms[next], begin)", FOLD),
    "missing bound of a pack of terms": ("fold_peers.cu", "if (begin + kPack <= elements)", "if (begin < elements)",
                                         FOLD),
    "packs of terms that are not aligned": (
        "fold_peers.cu", "std::all_of(inputs.terms, inputs.terms + inputs.num_ranks, is_aligned)", "true", FOLD),
    "sum rounded after every rank": ("fold_peers.cu", "sums[i] += Widened(terms.values[i]);",
                                     "sums[i] = Widened(Narrowed<Sum>::Of(sums[i] + Widened(terms.values[i])));", FOLD),
    "terms in the order of the group": ("cuda_peer_group.cc", "for (const int rank : fold_order())",
                                        "for (int rank = 0; rank < size(); ++rank)",
                                        ("cuda_peer_group.cc", "CudaPeersTest.*:*GroupsOfRanks*")),
    "reduce-scatter that peers still read from": (
        "cuda_peer_group.cc", "  ZG_RETURN_IF_ERROR(Fold(call, rank() * part, part, Own(output)));\n"
        "  return rendezvous_.Leave();",
        "  ZG_RETURN_IF_ERROR(rendezvous_.Leave());\n  return Fold(call, rank() * part, part, Own(output));", GROUP),
    "parts gathered before they are folded": (
        "cuda_peer_group.cc", "  ZG_RETURN_IF_ERROR(rendezvous_.MeetAgain());\n", "", GROUP),
    "flags that stay": ("stream_rendezvous.cc",
                        "  for_peers([&](int peer) { Write(&own()->flags[at][peer], 0); });\n", "", RENDEZVOUS),
    "one flag for all meetings": ("stream_rendezvous.cc", "const int at = static_cast<int>(meeting);",
                                  "const int at = 0;", RENDEZVOUS),
    "flags set back before they are seen": (
        "stream_rendezvous.cc", "  for_peers([&](int peer) { WaitUntil(&own()->flags[at][peer], call.word); });\n"
        "  for_peers([&](int peer) { Write(&own()->flags[at][peer], 0); });",
        "  for_peers([&](int peer) { Write(&own()->flags[at][peer], 0); });\n"
        "  for_peers([&](int peer) { WaitUntil(&own()->flags[at][peer], call.word); });", RENDEZVOUS),
    "words that are the same for every call": ("stream_rendezvous.cc", "return word == 0 ? 1 : word;",
                                               "return word == 0 ? 0 : 1;", RENDEZVOUS),
    "failure that others are not told": (
        "stream_rendezvous.cc", "    if (peer != rank_) Write(&blocks_[peer]->failed_rank_plus_1",
        "    if (peer == rank_) Write(&blocks_[peer]->failed_rank_plus_1", RENDEZVOUS),
    "queue that is not released": ("stream_rendezvous.cc", "if (Submit(side_).ok()) Release();", "(void)Submit(side_);",
                                   RENDEZVOUS),
    "memory freed that others have mapped": (
        "cuda_peer_arena.cc", "  mapping_.Unmap(blocks_);\n  blocks_.clear();", "  blocks_.clear();",
        ("cuda_peer_arena.cc", "*ArenaCanBeReplaced*")),
}
# These faults make something hang.
HANGS = ("queue that is not released",)
FOLDERS = {**{name: KERNELS for name in FAULTS}, **{name: COLLECTIVES for name in COLLECTIVE_FAULTS}}
FAULTS.update(COLLECTIVE_FAULTS)
MISSED_AT_MOST = len(FAULTS) // 20


class NotTried(Exception):
    """There is no program with the fault: its text does not stand in the sources, or they do not compile with it."""


def run(command, **kwargs):
    return subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)


def checked(command, **kwargs):
    done = run(command, **kwargs)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)[:2000]}\n{done.stdout}{done.stderr}")
    return done.stdout


class Build:
    """How Bazel compiles the sources of a folder and links their test."""

    def __init__(self, folder):
        self.sources = folder
        test, libraries = PROGRAMS[folder]
        checked(["bazel", "build", *FLAGS, PACKAGE + test])
        self.root = pathlib.Path(os.path.realpath("bazel-bin").partition("/bazel-out/")[0])
        targets = " + ".join(PACKAGE + library for library in libraries)
        actions = json.loads(checked(["bazel", "aquery", *FLAGS, "--output=jsonproto",
                                      f'mnemonic("CppCompile", {targets})']))
        self.compile = {}
        for action in actions["actions"]:
            arguments = action["arguments"]
            source = arguments[arguments.index("-c") + 1]
            if ".pic.o" not in " ".join(arguments):
                self.compile[os.path.basename(source)] = arguments
        self.link = pathlib.Path(f"bazel-bin/tests/cuda_emulation/{test}-2.params").read_text().split("\n")

    def object(self, folder, source):
        arguments = list(self.compile[source])
        copy = folder / self.sources / source
        arguments[arguments.index("-c") + 1] = str(copy if copy.exists() else pathlib.Path(self.sources + source))
        output = folder / (source + ".o")
        arguments[arguments.index("-o") + 1] = str(output)
        arguments[1:1] = ["-iquote", str(folder)]
        arguments.append("-Wno-error")  # a fault may leave something unused
        if "-MF" in arguments:
            arguments[arguments.index("-MF") + 1] = str(folder / (source + ".d"))
        done = run(arguments, cwd=self.root)
        return output, done.stderr if done.returncode else ""

    def program(self, folder, objects):
        originals = tuple(f"/{pathlib.Path(each.stem).stem}.o" for each in objects)
        link = [line for line in self.link
                if not (line.endswith(originals) and "/tests/cuda_emulation/_objs/" in line)]
        link[link.index("-o") + 1] = str(folder / "test")
        (folder / "params").write_text("\n".join(link))
        done = run(["g++", *map(str, objects), f"@{folder / 'params'}"], cwd=self.root)
        if done.returncode != 0:
            raise NotTried(f"does not link\n{done.stderr}")
        return folder / "test"


def with_fault(text, place, fault):
    """The text with its `place` replaced: "2:place" is the second of several."""
    numbered = re.match(r"(\d):", place)
    number = int(numbered[1]) if numbered else 1
    place = place[2:] if numbered else place
    parts = text.split(place)
    if len(parts) < number + 1 or (numbered is None and len(parts) != 2):
        raise NotTried(f"stands {len(parts) - 1} times: {place}")
    return place.join(parts[:number]) + fault + place.join(parts[number:])


def faulty_source(name):
    """The text of the fault's file with the fault in it."""
    file, place, fault, _ = FAULTS[name]
    return with_fault(pathlib.Path(FOLDERS[name] + file).read_text(), place, fault)


def try_fault(build, name):
    """("caught", "MISSED" or "NOT TRIED", how)"""
    try:
        caught, how = run_fault(build, name)
    except NotTried as reason:
        return "NOT TRIED", str(reason)
    return "caught" if caught else "MISSED", how


def run_fault(build, name):
    """(caught, how)"""
    file, _, _, (source, tests) = FAULTS[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        copy = folder / build.sources / file
        copy.parent.mkdir(parents=True)
        copy.write_text(faulty_source(name))
        output, error = build.object(folder, source)
        if error:
            raise NotTried(f"does not compile\n{error}")
        test = build.program(folder, [output])
        try:
            done = run([str(test), f"--gtest_filter={tests}", "--gtest_fail_fast"], timeout=60 if name in HANGS else 300)
        except subprocess.TimeoutExpired:
            return name in HANGS, "hangs"
        if done.returncode == 0:
            return False, "all tests passed"
        said = re.search(r"block \(.*|cuBLASLt: .*|CUDA: .*|CHECK failed: .*|^.*(?:IsClose|SameBits).*$|"
                         r"^(?:invalid argument|aborted): .*|^\[  FAILED  \] \w+\.\w+$",
                         done.stdout + done.stderr, re.MULTILINE)
        return True, said[0] if said else done.stdout[-200:]


def main():
    names = sys.argv[1:] or list(FAULTS)
    builds = {folder: Build(folder) for folder in sorted({FOLDERS[name] for name in names})}
    results = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, (result, how) in zip(names, pool.map(lambda name: try_fault(builds[FOLDERS[name]], name), names)):
            print(f"{result:<9}  {name}: {how}", flush=True)
            results.append(result)
    print(f"{results.count('caught')} of {len(names)} caught, {results.count('MISSED')} missed, "
          f"{results.count('NOT TRIED')} not tried")
    sys.exit(1 if results.count("MISSED") > MISSED_AT_MOST or "NOT TRIED" in results else 0)


if __name__ == "__main__":
    main()
