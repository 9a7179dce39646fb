#!/usr/bin/env python3
"""gpu_check_test.py GPU_CHECK: the command that checks everything on a GPU, in a bundle of this test's own, whose
programs, nvidia-smi and compute-sanitizer do as a test tells them.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1)).absolute().parent

# A fault is in FAKE_FAULTS by its name, with a part of the command line that has it.
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
if has("error"):
    sys.exit("error: of its own\\n  hint: none")
"""
DEMO = STAND_IN + """
cuda = flags["--device"] == "cuda"
if flags.get("--embd") == "4096":
    print("error on rank 0: GPU: 123 bytes are missing; use more\\n  hint: stage 1 needs about 1 GiB per rank, which "
          "would fit" if not has("no hint") else "  hint: no stage would fit")
    sys.exit(1)
if flags.get("--gpu-collectives") == "nccl" and flags.get("--ranks") == "2" and not has("two GPUs"):
    sys.exit("error: ranks 0 and 1 share the GPU x, which NCCL does not allow; start one rank per GPU")
if "--data" in flags:
    assert len(pathlib.Path(flags["--data"]).read_text()) > 10000
memory = {"parameters": 10, "peak": 30}
traffic = {"all_gather": {"count": 1, "bytes": 8}}
report = {
    "steps": [{"loss": 2.0 * (1.01 if cuda and has("far") else 1 + 1e-6 * cuda), "grad_norm": None}] * 4,
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
BENCH = STAND_IN + """
print("libraries", os.environ["LD_LIBRARY_PATH"])
"""
COMPARE = STAND_IN + """
if has("torch"):
    pathlib.Path(flags["--json"]).write_text(json.dumps({"summary": ["fast"]}))
else:
    print("SKIPPED: no PyTorch")
"""
NVIDIA_SMI = STAND_IN + """
if has("slow"):
    time.sleep(1.5)
if "--query-gpu" in line:
    print("A GPU, 580.1, 1024\\n" * (2 if has("two GPUs") else 1), end="")
"""
SANITIZER = STAND_IN + """
words = sys.argv[1:]
while words[0].startswith("--"):
    words = words[2:]
print(f"ERROR SUMMARY: {2 if has('invalid read') else 0} errors", flush=True)
os.execv(words[0], words)
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.bundle = self.path / "bundle"
        for folder in ("gpu_check", "bench/gpu"):
            (self.bundle / "tools" / folder).mkdir(parents=True)
        for file in TOOLS.glob("*.py"):
            shutil.copy(file, self.bundle / "tools/gpu_check")
        self.edit("tools/gpu_check/machine.py", "/usr/local", str(self.bundle / "local"))  # not this machine's
        self.write(".zerograph_bundle", "")
        for name in ("gpt", "recipe", "classifier"):
            self.write(name, DEMO)
        self.write("op_suite_gpu_test", OP_SUITE)
        self.write("stages_gpu_test", STAGES)
        self.write("cuda_kernel_bench", BENCH)
        self.write("tools/bench/gpu/compare_with_torch_gpu.py", COMPARE.replace(" -IS", ""))
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
        command = [sys.executable, str(self.bundle / "tools/gpu_check/gpu_check.py"), "--output", str(self.path / "out"),
                   "--jobs", "2", *arguments]
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
        """What hung, which was asked to end at first, and its child."""
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


class Passing(GpuCheck):
    def test_everything_passes(self):
        code, output, errors = self.check()
        self.assertEqual(code, 0, output + errors)
        results = self.results()
        names = self.check("--list")[1].split()
        self.assertEqual(set(results), set(names))
        self.assertEqual(self.statuses(), {name: "skipped" if name == "torch" else "passed" for name in names})
        self.assertTrue(output.endswith(f"\n{len(names) - 1} passed, 0 failed, 1 skipped\n"))
        self.assertRegex(output, r"(?m)^ok +demo.gpt.f32.host +\d+\.\d s$")
        self.assertRegex(output, r"(?m)^skipped +torch +\d+\.\d s  no PyTorch$")

        self.assertEqual(names[0], "environment")
        facts = {name: entry.get("facts") for name, entry in results.items()}
        self.assertEqual(facts["environment"]["gpus"],
                         [{"name": "A GPU", "driver": "580.1", "memory_bytes": 1 << 30}])
        libraries = facts["environment"]["libraries"]
        self.assertEqual(libraries["libnccl.so.2"], str(self.bundle / "libraries/libnccl.so.2"))
        self.assertEqual(libraries["libcublasLt.so.19"], str(self.bundle / "cuda/lib64/libcublasLt.so.19"))
        path = facts["kernel_bench"]["table"][0].split()[1].split(":")
        self.assertEqual(path[0], str(self.bundle / "libraries"))
        self.assertIn(str(self.bundle / "cuda/lib64"), path)

        self.assertEqual(facts["ops.add"], {"tests": 2})
        self.assertEqual(facts["ops.OnTheDevice"], {"tests": 1})
        self.assertEqual(facts["memcheck.linear"]["test"], "Ops/OpSuite.MatchesCpu/linear")
        self.assertEqual(facts["racecheck.add"]["summary"], "SUMMARY: 0 errors")
        self.assertEqual(facts["out_of_memory"]["missing_bytes"], 123)
        self.assertAlmostEqual(facts["demo.recipe.bf16.near_cpu"]["largest_difference"], 1e-6)
        for shard in range(9):
            self.assertIn(f"shard {shard} of 9\n", (self.path / f"out/stages.{shard}.log").read_text())
        self.assertEqual(list(self.path.glob("check.*")), [])  # no temporary files are left

    def test_the_demos_are_run_at_every_stage(self):
        self.assertEqual(self.check("--only", "demo.gpt.f16.*")[0], 0)
        runs = self.runs_of("gpt")
        for stage in "0123":
            for way in (f"--device cuda --gpu-collectives host --ranks 2 --zero {stage} ",
                        f"--device cuda --gpu-collectives nccl --zero {stage} "):
                self.assertEqual(sum(way in line for line in runs), 1, way)
        self.assertEqual(sum("--cuda-graph" in line for line in runs), 2)
        self.assertEqual(sum("--device cpu" in line for line in runs), 1)
        self.assertTrue(all("--dtype f16 --micro-batches 2 " in line for line in runs))

    def test_the_model_that_does_not_fit_is_larger_than_the_gpu(self):
        self.assertEqual(self.check("--only", "out_of_memory")[0], 0)
        layers = int(re.search(r"--layers (\d+)", self.runs_of("gpt")[0]).group(1))
        self.assertGreater(layers * 12 * 4096 ** 2 * 16, 1.1 * (1 << 30))

    def test_two_gpus_talk_over_nccl(self):
        code, output, _ = self.check("--only", "demo.gpt.f32.two_ranks_over_nccl", two_GPUs="")
        self.assertEqual(code, 0, output)
        self.assertEqual(sum("nccl --ranks 2 --zero" in line for line in self.runs_of("gpt")), 4)

    def test_the_comparison_with_torch_is_kept(self):
        self.assertEqual(self.check("--only", "torch", torch="")[0], 0)
        self.assertEqual(self.results()["torch"]["facts"], {"summary": ["fast"]})
        self.assertTrue((self.path / "out/compare_with_torch.json").exists())

    def test_nothing_but_skipped_checks_is_no_success(self):
        code, output, _ = self.check("--only", "torch")
        self.assertEqual(code, 1)
        self.assertIn("0 passed, 0 failed, 1 skipped\n", output)

    def test_without_a_sanitizer_its_checks_are_skipped(self):
        (self.bundle / "cuda/bin/compute-sanitizer").unlink()
        self.check("--only", "memcheck", "racecheck")
        self.assertEqual(self.statuses(), {"memcheck": "skipped", "racecheck": "skipped"})
        self.assertIn("there is no compute-sanitizer in", self.results()["memcheck"]["reason"])


class Failing(GpuCheck):
    def test_other_bits_at_one_stage(self):
        code, output, _ = self.check("--only", "environment", "demo.gpt.f32.*", other_hash="nccl --zero 2")
        self.assertEqual(code, 1)
        statuses = self.statuses()
        self.assertEqual(statuses.pop("demo.gpt.f32.nccl"), "failed")
        self.assertEqual(set(statuses.values()), {"passed"})
        self.assertEqual(len(statuses), 6)
        self.assertIn("param_sha256 of --device cuda --gpu-collectives nccl --zero 2: got 1234, expected abcd, as of "
                      "--device cuda --gpu-collectives host\n", output)
        self.assertIn("6 passed, 1 failed, 0 skipped\n", output)

    def test_a_plan_that_is_not_what_was_measured(self):
        name, flags = "demo.recipe.f32.host", "--device cuda --gpu-collectives host"
        self.expect_failed(name, f"memory of {flags}: parameters: measured 11, planned 10", other_memory="recipe")
        self.expect_failed(name, f"traffic of {flags}: all_gather: measured .*9.*, planned .*8", other_traffic="recipe")
        self.expect_failed(name, f"peaks of {flags}: .*measured .*31.*, planned .30", other_peak="recipe")

    def test_losses_far_from_those_of_the_cpu(self):
        self.expect_failed("demo.gpt.f32.near_cpu", "losses are 1.0e-02 apart, expected at most 0.0001", far="cuda")

    def test_a_graph_that_computes_something_else(self):
        self.expect_failed("demo.gpt.f32.graph", "param_sha256 of --device cuda --cuda-graph", other_hash="-graph")

    def test_a_program_that_crashes(self):
        code, output, _ = self.check("--only", "ops.*", crash="Cpu/add:")
        self.assertEqual(code, 1)
        self.assertEqual(self.statuses(), {"ops.add": "failed", "ops.linear": "passed", "ops.OnTheDevice": "passed"})
        self.assertRegex(output, r"FAILED +ops.add .* op_suite_gpu_test: SIGSEGV\n    \| \$ GTEST_FILTER=.*/add ")

    def test_a_program_that_ends_with_an_error(self):
        output = self.expect_failed("stages.3", "stages_gpu_test: exit code 1: error: of its own", error="stages")
        self.assertIn("\n    |   hint: none\n", output)
        self.assertIn("  hint: none", self.results()["stages.3"]["log_end"])

    def test_no_test_at_all_is_no_success(self):
        self.expect_failed("ops.add", "op_suite_gpu_test: it ran no test", no_tests="add")

    def test_a_program_that_hangs_is_killed_with_its_children(self):
        output = self.expect_failed("demo.gpt.f32.host", "gpt: not done after 5 s", "--timeout", "5", hang="host")
        self.assertIn("    | here it hangs\n", output)
        self.expect_gone()

    def test_errors_that_the_sanitizer_finds(self):
        self.expect_failed("memcheck.add", "expected a test that passed, and a summary without errors",
                           invalid_read="memcheck")

    def test_a_model_that_is_not_refused_as_it_should(self):
        self.expect_failed("out_of_memory", "exit code 1; expected an error like .*bytes are missing", no_hint="4096")

    def test_without_nvidia_smi(self):
        (self.bundle / "bin/nvidia-smi").unlink()
        self.expect_failed("environment", "there is no nvidia-smi on PATH: this machine has no NVIDIA driver")
        self.expect_failed("out_of_memory", "there is no nvidia-smi on PATH")

    def test_with_an_nvidia_smi_that_fails(self):
        self.expect_failed("environment", "nvidia-smi: exit code 1: error: of its own", error="nvidia-smi")

    def test_without_a_library(self):
        self.edit("tools/gpu_check/machine.py", '"libnccl.so.2"', '"libnccl.so.77"')
        self.expect_failed("environment",
                           "there is no libnccl.so.77 in .*/libraries, .*/cuda/lib64, .*; add its folder to LD_LIB")

    def test_an_op_suite_that_cannot_list_its_tests(self):
        code, _, _ = self.check("--only", "ops", "stages.0", crash="--gtest_list_tests")
        self.assertEqual(code, 1)
        self.assertEqual(self.statuses(), {"ops": "failed", "stages.0": "passed"})
        self.assertIn("--gtest_list_tests: exit code -11, 0 ops", self.results()["ops"]["reason"])


class Stopping(GpuCheck):
    def test_minutes(self):
        code, output, _ = self.check("--only", "environment", "stages.*", "--minutes", "0.03", slow="nvidia-smi")
        self.assertEqual(code, 1)
        self.assertIn("1 passed, 0 failed, 0 skipped, 9 not run\n", output)
        self.assertEqual(self.statuses()["stages.8"], "not run")
        code, output, _ = self.check("--only", "environment", "stages.*", "--resume")
        self.assertEqual(code, 0, output)
        self.assertIn("1 checks passed before\n", output)
        self.assertIn("10 passed, 0 failed, 0 skipped\n", output)

    def test_resume_runs_again_what_failed(self):
        chosen = ["--only", "ops.add", "ops.linear", "torch"]
        self.assertEqual(self.check(*chosen, error="Cpu/add:")[0], 1)
        code, output, _ = self.check(*chosen, "--resume")
        self.assertEqual(code, 0)
        self.assertNotIn("ops.linear", output)
        self.assertRegex(output, r"(?m)^ok +ops.add ")
        self.assertRegex(output, r"(?m)^skipped +torch ")
        self.assertIn("2 passed, 0 failed, 1 skipped\n", output)
        self.assertEqual(len(self.runs_of("op_suite_gpu_test")), 2 + 2 + 1)  # and two listings

    def test_resume_with_other_programs(self):
        self.assertEqual(self.check("--only", "stages.0", "--resume")[0], 0)  # nothing to resume yet
        self.write("programs/gpt/inside/gpt", "another build")
        code, _, errors = self.check("--only", "stages.0", "--resume")
        self.assertEqual(code, 2)
        self.assertIn("results.json is of other programs\n  hint: begin anew, without --resume\n", errors)
        self.assertEqual(self.check("--only", "stages.0")[0], 0)

    def start_hanging(self):
        process = self.start("--only", "environment", "demo.gpt.f32.host", "stages.0", hang="--ranks 2")
        deadline = time.monotonic() + 60
        while not (self.bundle / "pids").exists() or self.statuses().get("stages.0") != "passed":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        return process

    def test_what_is_known_survives_a_kill(self):
        process = self.start_hanging()
        process.kill()
        process.communicate(timeout=10)
        for pid in (self.bundle / "pids").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        expected = {"environment": "passed", "demo.gpt.f32.host": "running", "stages.0": "passed"}
        self.assertEqual(self.statuses(), expected)
        code, output, _ = self.check("--only", *expected, "--resume")
        self.assertEqual(code, 0)
        self.assertIn("2 checks passed before\n", output)

    def test_a_polite_signal_ends_what_runs(self):
        process = self.start_hanging()
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.expect_gone()
        self.assertEqual(self.statuses()["demo.gpt.f32.host"], "running")


class Usage(GpuCheck):
    def expect_usage_error(self, message, *arguments):
        code, output, errors = self.check(*arguments)
        self.assertEqual(code, 2, output)
        self.assertIn(message, errors)
        self.assertFalse(self.results_file.exists())

    def test_wrong_flags(self):
        self.expect_usage_error("--only: got 'demos', expected the name of a check, or a glob", "--only", "demos")
        self.expect_usage_error("--skip: got 'x*', expected the name of a check, or a glob", "--skip", "torch", "x*")
        self.expect_usage_error("--only and --skip leave no check", "--only", "torch", "--skip", "*")
        self.expect_usage_error("argument --jobs: got 0, expected a number, at least 1", "--jobs", "0")
        self.expect_usage_error("argument --timeout: got 0, expected a number, more than 0", "--timeout", "0")
        self.expect_usage_error("argument --minutes: got nan, expected a number, more than 0", "--minutes", "nan")
        self.expect_usage_error("argument --minutes: got soon, expected a number", "--minutes", "soon")
        self.expect_usage_error("--output /dev/null: ", "--output", "/dev/null")

    def test_a_broken_record(self):
        self.assertEqual(self.check("--only", "stages.0")[0], 0)
        self.results_file.write_text("{")
        code, _, errors = self.check("--resume")
        self.assertEqual(code, 2)
        self.assertIn("out: ", errors)

    def test_a_missing_program(self):
        (self.bundle / "recipe").unlink()
        (self.bundle / "op_suite_gpu_test").unlink()
        self.expect_usage_error("lacks recipe, op_suite_gpu_test\n  hint: make the bundle with tools/bundle.sh "
                                "--gpu-check\n")
        self.assertEqual(self.check("--only", "demo.gpt.f32.graph")[0], 0)

    def test_a_missing_program_in_the_source_tree(self):
        (self.bundle / ".zerograph_bundle").unlink()
        self.write("bazel-bin/models/gpt/gpt", DEMO)
        self.assertEqual(self.check("--only", "demo.gpt.f32.graph")[0], 0)
        code, _, errors = self.check("--only", "demo.recipe.f32.graph", "stages.0")
        self.assertEqual(code, 2)
        self.assertIn("lacks recipe, stages_gpu_test\n  hint: bazel build -c opt //models/recipe:recipe "
                      "//tests/gpu:stages_gpu_test\n", errors)

    def test_list_targets(self):
        code, output, _ = self.check("--list-targets")
        self.assertEqual(code, 0)
        self.assertEqual(output.split()[0], "//models/gpt:gpt")
        self.assertEqual({target.rpartition(":")[2] for target in output.split()},
                         {"gpt", "recipe", "classifier", "op_suite_gpu_test", "stages_gpu_test", "cuda_kernel_bench"})


if __name__ == "__main__":
    unittest.main()
