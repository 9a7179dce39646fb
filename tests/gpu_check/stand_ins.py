"""Programs that stand in for ours, nvidia-smi and NVIDIA's tools, behave as a test tells them, and keep a log, for the
tests of gpu_check.py. The first argument of a test is the path of gpu_check.py.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1)).absolute().parents[1]

# FAKE_FAULTS maps the name of a fault to a part of the command lines that have it.
STAND_IN = f"#!{sys.executable} -IS" + """
import json, os, pathlib, signal, subprocess, sys, time
line = " ".join([os.environ.get("GTEST_FILTER", ""), *sys.argv])
flags = dict(zip(sys.argv[1:], sys.argv[2:] + [""]))
here = pathlib.Path(__file__).resolve().parent
def has(fault):
    return json.loads(os.environ["FAKE_FAULTS"]).get(fault, line + "no") in line
with (here / "log").open("a") as log:
    log.write(line + "\\n")
if has("crash"):
    os.kill(os.getpid(), signal.SIGSEGV)
if has("hang"):
    child = subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); print(1, flush=True); "
                              "time.sleep(60)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    signal.signal(signal.SIGTERM, lambda *_: ((here / "was asked to end").touch(), os._exit(1)))
    (here / "pids").write_text(f"{os.getpid()} {child.pid}")
    print("here it hangs", flush=True)
    time.sleep(60)
if has("stuck") and not (here / "was stuck").exists():
    (here / "was stuck").touch()
    sys.exit("error: all_gather 'x' on rank 0: no progress for 100 s; another rank does not take part")
if has("error"):
    sys.exit("error: of its own\\n  hint: none")
"""
DEMO = STAND_IN + """
cuda = flags["--device"] == "cuda"
if flags.get("--embd") == "4096":
    print("error on rank 0: GPU: 123 bytes are missing; use more\\n  hint: stage 1 needs about 1 GiB per rank, which "
          "would fit" if not has("no hint") else "  hint: no stage would fit")
    sys.exit(1)
if flags.get("--gpu-collectives") == "nccl" and flags.get("--ranks") == "2" and not (
        has("two GPUs") or os.environ.get("ZG_TEST_SHARED_GPU") == "1"):
    sys.exit("error: ranks 0 and 1 share the GPU x, which NCCL does not allow; start one rank per GPU")
if "--data" in flags:
    data = pathlib.Path(flags["--data"])
    assert len((data / "train-images-idx3-ubyte.gz" if data.is_dir() else data).read_bytes()) > 10000
if "--gemm-choices" in flags:
    choices = pathlib.Path(flags["--gemm-choices"])
    if has("measures again") or not choices.exists():
        choices.write_text(json.dumps({"choices": {"GPU": {line: {"us": 9.0, "first_us": 10.0}}}}))
if flags.get("--log-level") == "debug":
    print("debug: product bf16 (8, 8) x (8, 8): algorithm 66, tile 20, stages 36, split-K 1, reduction scheme 0",
          file=sys.stderr)
memory = {"parameters": 10, "peak": 30}
traffic = {"all_gather": {"count": 1, "bytes": 8}}
loss = 2.0 * (1.01 if cuda and has("far") else 1 + 1e-6 * cuda)
report = {
    "steps": [{"loss": loss, "grad_norm": None}] * int(flags["--steps"]),
    "final": {"param_sha256": "1234" if has("other hash") else "abcd", "optimizer_sha256": "ef"},
    "memory": {"predicted": memory, "measured": dict(memory, parameters=11) if has("other memory") else memory,
               "per_rank_peak": [30, 31 if has("other peak") else 30]},
    "communication": {"predicted": traffic, "measured": {"all_gather": {"count": 1, "bytes": 9}}
                      if has("other traffic") else traffic},
}
pathlib.Path(flags["--report"]).write_text(json.dumps(report))
print("step 1/4  loss 2")
"""
OP_SUITE = STAND_IN + """
if "--gtest_list_tests" in flags:
    print("Running main()\\nOnTheDevice.\\n  SaysWhat\\nOps/OpSuite.\\n  MatchesCpu/add  # GetParam() = \\"add\\"\\n"
          "  MatchesCpu/linear  # GetParam() = \\"linear\\"\\n  InPlace/add\\n  InPlace/linear")
    sys.exit()
tests = (flags.get("--gtest_filter") or os.environ.get("GTEST_FILTER") or "one").split(":")
print(f"[  PASSED  ] {0 if has('no tests') else len(tests)} test{'s' * (len(tests) != 1)}.")
"""
STAGES = STAND_IN + """
assert os.environ["TEST_TMPDIR"] == os.environ["TMPDIR"] and not os.listdir(os.environ["TMPDIR"])
print(f"shard {os.environ['GTEST_SHARD_INDEX']} of {os.environ['GTEST_TOTAL_SHARDS']}\\n[  PASSED  ] 5 tests.")
"""
# One kernel is as fast as expected, one three times as slow.
BENCH = STAND_IN + """
print("libraries", os.environ["LD_LIBRARY_PATH"])
kernels = [{"name": name, "op": op, "times_per_step": times, "flops": flops, "moved_bytes": 10**8, "seconds": seconds}
           for name, op, times, flops, seconds in [("attention", "attention", 12, 10**11, 0.00024),
                                                   ("linear head", "linear", 1, 2532 * 10**9, 0.0123)]]
result = {"sizes": {"layers": 12, "heads": 12, "channels": 768, "context": 1024, "vocabulary": 50304, "batch": 32},
          "ceilings": {"flops_per_s": 7.9e14, "bytes_per_s": 4.3e12}, "kernels": kernels}
pathlib.Path(flags["--json"]).write_text(json.dumps(result))
"""
# Replacements of main() in the scripts of these names, which other scripts import.
COMPARE = """
def main():
    import os
    line, flags = " ".join(sys.argv), dict(zip(sys.argv[1:], sys.argv[2:] + [""]))
    if "torch" not in json.loads(os.environ["FAKE_FAULTS"]):
        print("SKIPPED: no PyTorch")
        return 0
    who = [] if "--torch-only" in flags else ["ours stage 0"]
    names = [*who, "torch compile default, master"]
    summary = [{"name": name, "ms_per_step_median": 60.0, "mfu": 0.6} for name in names]
    Path(flags["--json"]).write_text(json.dumps({"summary": summary, "ceilings": []}))
    if json.loads(os.environ["FAKE_FAULTS"])["torch"] == "fails":
        print("compare_with_torch_gpu: ours stage 0, graph: it failed", file=sys.stderr)
        return 1
    return 0
"""
PARITY = """
def main():
    import os
    args = parse_arguments()
    if "torch" not in json.loads(os.environ["FAKE_FAULTS"]):
        print("SKIPPED: no PyTorch")
        return 0
    write_safetensors(Path(args.weights), {"weight": ([1], bytes(4))})
    loss = 2.1 if "other losses" in json.loads(os.environ["FAKE_FAULTS"]) else 2.001
    Path(args.json).write_text(json.dumps({"losses": [loss] * args.steps}))
    return 0
"""
NVIDIA_SMI = STAND_IN + """
if has("slow"):
    time.sleep(1.5)
if "--query-gpu" in line:
    print("A GPU, 580.1, 1024\\n" * (2 if has("two GPUs") else 1), end="")
"""
NCU = STAND_IN + """
print("==ERROR== no access to counters" if has("no counters") else '"ID","Kernel Name"\\n"0","K","Duration","us","1"')
"""
SANITIZER = STAND_IN + """
if has("old device"):
    print("========= Error: Device not supported. Please refer to the manual")
    sys.exit(1)
words = sys.argv[1:]
while words[0].startswith("--"):
    words = words[2:]
print(f"ERROR SUMMARY: {2 if has('invalid read') else 0} errors", flush=True)
os.execv(words[0], words)
"""


PROGRAMS = {"gpt": DEMO, "recipe": DEMO, "classifier": DEMO, "llama": DEMO, "resnet": DEMO,
            "op_suite_gpu_test": OP_SUITE, "stages_gpu_test": STAGES, "cuda_kernel_bench": BENCH}


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.bundle = self.path / "bundle"
        for folder in ("gpu_check", "bench", "bench/gpu"):
            (self.bundle / "tools" / folder).mkdir(parents=True)
            for file in (TOOLS / folder).glob("*.py"):
                shutil.copy(file, self.bundle / "tools" / folder)
        self.write(".zerograph_bundle", "")
        for name, text in PROGRAMS.items():
            self.write(name, text)
        self.add_machine()

    def add_machine(self):
        """Writes what a machine has besides the bundle, and PyTorch's answers."""
        self.edit("tools/gpu_check/machine.py", "/usr/local", str(self.bundle / "local"))  # not this machine's
        for name, main in (("compare_with_torch_gpu", COMPARE), ("loss_parity", PARITY)):
            begin = '\nif __name__ == "__main__":'
            self.edit(f"tools/bench/gpu/{name}.py", begin, main + "\n" + begin)
        self.write("cuda/bin/compute-sanitizer", SANITIZER)
        self.write("cuda/lib64/libcublasLt.so.19", "")
        self.write("libraries/libnccl.so.2", "")
        self.write("bin/nvidia-smi", NVIDIA_SMI)
        self.results_file = self.path / "out/results.json"

    def write(self, name, text):
        path = self.bundle / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def edit(self, name, old, new):
        text = (self.bundle / name).read_text()
        self.assertIn(old, text)
        self.write(name, text.replace(old, new))

    def start(self, *arguments, **faults):
        names = {name.replace("_", " "): part for name, part in faults.items()}
        environment = {"PATH": str(self.bundle / "bin"), "CUDA_PATH": str(self.bundle / "cuda"),
                       "LD_LIBRARY_PATH": str(self.bundle / "libraries"), "PYTHONDONTWRITEBYTECODE": "1",
                       "TMPDIR": str(self.path), "FAKE_FAULTS": json.dumps(names)}
        command = [sys.executable, str(self.bundle / "tools/gpu_check/gpu_check.py"), "--output",
                   str(self.path / "out"), "--jobs", "4", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                cwd=self.path)

    def check(self, *arguments, **faults):
        """Exit code, standard output, standard error."""
        process = self.start(*arguments, **faults)
        output, errors = process.communicate(timeout=200)
        return process.returncode, output, errors

    def results(self):
        return json.loads(self.results_file.read_text())["checks"]

    def statuses(self):
        return {name: entry["status"] for name, entry in self.results().items()}

    def expect_failed(self, name, reason, *flags, **faults):
        code, output, _ = self.check("--only", name, *flags, **faults)
        self.assertEqual(code, 1)
        self.assertIn("0 passed, 1 failed, 0 skipped\n", output)
        self.assertEqual(self.results()[name]["status"], "failed")
        self.assertRegex(self.results()[name]["reason"], reason)
        self.assertRegex(output, rf"(?m)^FAILED +{re.escape(name)} .*{reason}")
        return output

    def expect_gone(self):
        """The program that hung, which must first have been asked to end, and its child."""
        self.assertTrue((self.bundle / "was asked to end").exists())
        deadline = time.monotonic() + 10
        for pid in (self.bundle / "pids").read_text().split():
            while self.is_running(pid):
                self.assertLess(time.monotonic(), deadline, pid)
                time.sleep(0.05)

    def is_running(self, pid):
        try:
            return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False

    def runs_of(self, program):
        """The command lines with which it was run."""
        lines = (self.bundle / "log").read_text().splitlines()
        return [line for line in lines if str(self.bundle / program) in line]
