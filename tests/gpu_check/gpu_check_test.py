#!/usr/bin/env python3
"""gpu_check_test.py GPU_CHECK: tests the command that checks everything on a GPU, in a bundle of this test's own,
where stand-ins for our programs, nvidia-smi and compute-sanitizer behave as a test tells them.
"""

import os
import re
import signal
import tarfile
import time
import unittest

from stand_ins import DEMO, NCU, GpuCheck


class Passing(GpuCheck):
    def test_everything_passes(self):
        code, output, errors = self.check()
        self.assertEqual(code, 0, output + errors)
        results = self.results()
        names = self.check("--list")[1].split()
        self.assertEqual(set(results), set(names))
        skipped = ["torch.flash", "torch.cudnn", "torch.stages", "full_size.loss_parity", "ncu"]
        self.assertEqual(self.statuses(), {name: "skipped" if name in skipped else "passed" for name in names})
        self.assertTrue(output.endswith(f"\n{len(names) - 5} passed, 0 failed, 5 skipped\n"))
        self.assertRegex(output, r"(?m)^ok +demo.gpt.f32.host +\d+\.\d s$")
        self.assertRegex(output, r"(?m)^skipped +torch.flash +\d+\.\d s  no PyTorch$")

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
                        f"--device cuda --gpu-collectives peer --ranks 2 --zero {stage} ",
                        f"--device cuda --gpu-collectives nccl --zero {stage} "):
                self.assertEqual(sum(way in line for line in runs), 1, way)
        self.assertEqual(sum("--cuda-graph" in line for line in runs), 5)
        self.assertEqual(sum("peer --ranks 2 --cuda-graph" in line for line in runs), 2)
        self.assertEqual(sum("peer --ranks 2 --overlap unlimited" in line for line in runs), 3)
        self.assertEqual(sum("--device cpu" in line for line in runs), 1)
        self.assertTrue(all("--dtype f16 --micro-batches 2 " in line for line in runs))

    def test_the_model_that_does_not_fit_is_larger_than_the_gpu(self):
        self.assertEqual(self.check("--only", "out_of_memory")[0], 0)
        layers = int(re.search(r"--layers (\d+)", self.runs_of("gpt")[0]).group(1))
        self.assertGreater(layers * 12 * 4096 ** 2 * 16, 1.1 * (1 << 30))

    def test_what_says_most_comes_first(self):
        names = self.check("--list")[1].split()
        order = ["environment", "ops.add", "demo.gpt.bf16.host", "kernel_bench", "torch.flash", "torch.cudnn",
                 "full_size.bits", "full_size.loss_parity", "memcheck.linear", "stages.0", "demo.resnet.f16.near_cpu",
                 "out_of_memory", "ncu", "torch.stages", "memcheck.add", "racecheck.add"]
        self.assertEqual(sorted(order, key=names.index), order)
        self.assertEqual(len(names), len(set(names)))

    def test_two_ranks_share_the_gpu_over_nccl_for_this_test(self):
        code, output, _ = self.check("--only", "demo.gpt.f32.two_ranks_over_nccl")
        self.assertEqual(code, 0, output)
        self.assertEqual(sum("nccl --ranks 2" in line for line in self.runs_of("gpt")), 5)  # one is refused
        self.assertTrue(self.results()["demo.gpt.f32.two_ranks_over_nccl"]["facts"]["shared"])

    def test_two_gpus_talk_over_nccl(self):
        code, output, _ = self.check("--only", "demo.gpt.f32.two_ranks_over_nccl", two_GPUs="")
        self.assertEqual(code, 0, output)
        self.assertEqual(sum("nccl --ranks 2 --zero" in line for line in self.runs_of("gpt")), 4)

    def test_the_comparisons_with_torch_are_kept(self):
        self.assertEqual(self.check("--only", "torch.flash", "torch.cudnn", torch="")[0], 0)
        rows = self.results()["torch.flash"]["facts"]["summary"]
        self.assertEqual([row["name"] for row in rows], ["ours stage 0", "torch compile default, master"])
        self.assertEqual(len(self.results()["torch.cudnn"]["facts"]["summary"]), 1)
        self.assertTrue((self.path / "out/compare_flash.json").exists())

    def test_losses_of_the_full_size_are_those_of_torch(self):
        self.assertEqual(self.check("--only", "full_size.loss_parity", torch="")[0], 0)
        self.assertAlmostEqual(self.results()["full_size.loss_parity"]["facts"]["largest_difference"], 5e-4, places=5)
        run, = self.runs_of("gpt")
        self.assertRegex(run, "--vocab 50304 --batch 16 .*--warmup-steps 0 .*--micro-batches 1 --init .*weights.safet")

    def test_bits_of_the_full_size(self):
        self.assertEqual(self.check("--only", "full_size.bits")[0], 0)
        runs = self.runs_of("gpt")
        self.assertEqual(len(runs), 7)
        self.assertEqual(sum("--cuda-graph" in run for run in runs), 1)
        self.assertEqual(sum("--ranks 2 --zero 3" in run for run in runs), 2)
        self.assertEqual(sum("--log-level debug" in run for run in runs), 1)

    def test_algorithms_of_the_full_size(self):
        code, output, _ = self.check("--only", "full_size.gemm_choices", "full_size.bits")
        self.assertEqual(code, 0)
        for how in ("proposed first", "fastest"):
            self.assertIn(f"\n{how}: bf16 (8, 8) x (8, 8): algorithm 66, tile 20, stages 36, split-K 1, reduction "
                          "scheme 0\n", output)
        runs = self.runs_of("gpt")
        self.assertEqual(len(runs), 4 + 7)
        self.assertEqual(sum("--gemm-choices" in run for run in runs), 4)
        line, = self.results()["full_size.gemm_choices"]["facts"]["microseconds"]
        self.assertRegex(line, r": 9.0, at first 10.0$")

    def test_counters(self):
        self.write("cuda/bin/ncu", NCU)
        self.assertEqual(self.check("--only", "ncu")[0], 0)
        self.assertEqual(self.results()["ncu"]["facts"]["counters"]["attention"], ['"0","K","Duration","us","1"'])
        self.assertIn("--kernel-name regex:Attention", (self.bundle / "cuda/bin/log").read_text())
        self.check("--only", "ncu", no_counters="")
        self.assertEqual(self.results()["ncu"]["reason"], "ncu: no access to counters")

    def test_nothing_but_skipped_checks_is_no_success(self):
        code, output, _ = self.check("--only", "torch.flash")
        self.assertEqual(code, 1)
        self.assertIn("0 passed, 0 failed, 1 skipped\n", output)

    def test_a_sanitizer_that_does_not_know_the_machine(self):
        self.check("--only", "memcheck.add", old_device="")
        self.assertEqual(self.results()["memcheck.add"]["status"], "skipped")
        self.assertIn("Device not supported", self.results()["memcheck.add"]["reason"])

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
        self.assertEqual(len(statuses), 7)
        self.assertIn("param_sha256 of --device cuda --gpu-collectives nccl --zero 2: got 1234, expected abcd, as of "
                      "--device cuda --gpu-collectives host\n", output)
        self.assertIn("7 passed, 1 failed, 0 skipped\n", output)

    def test_a_plan_that_is_not_what_was_measured(self):
        name, flags = "demo.recipe.f32.host", "--device cuda --gpu-collectives host"
        self.expect_failed(name, f"memory of {flags}: parameters: measured 11, planned 10", other_memory="recipe")
        self.expect_failed(name, f"traffic of {flags}: all_gather: measured .*9.*, planned .*8", other_traffic="recipe")
        self.expect_failed(name, f"peaks of {flags}: .*measured .*31.*, planned .30", other_peak="recipe")

    def test_losses_far_from_those_of_the_cpu(self):
        self.expect_failed("demo.gpt.f32.near_cpu", "losses are 1.0e-02 apart, expected at most 0.0001", far="cuda")

    def test_losses_far_from_those_of_torch(self):
        self.expect_failed("full_size.loss_parity", "losses are 4.8e-02 apart, expected at most 0.002", torch="",
                           other_losses="")

    def test_other_bits_at_full_size(self):
        self.expect_failed("full_size.bits", "param_sha256 of --steps 3 --micro-batches 2 --cuda-graph: got 1234",
                           other_hash="--cuda-graph")

    def test_algorithms_that_change(self):
        self.expect_failed("full_size.gemm_choices", "a run with the same products changed the file",
                           measures_again="--cuda-graph")

    def test_a_contender_that_fails(self):
        output = self.expect_failed("torch.flash", "compare_with_torch_gpu: ours stage 0, graph: it failed",
                                    torch="fails")
        self.assertEqual(len(self.results()["torch.flash"]["facts"]["summary"]), 2)
        self.assertRegex(output, r"(?m)^\| step, ours stage 0 \(flash\) \| 60.5 ms \| 60 ms \| 0.99 \|  \|$")
        self.assertIn("\n| MFU of ours, the best | 58 % | 60 % | 1.03 |  |\n", output)

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
        self.expect_failed("out_of_memory", "there is no nvidia-smi on PATH")
        reason = "there is no nvidia-smi on PATH: this machine has no NVIDIA driver"
        code, output, _ = self.check("--only", "environment", "ops.*", "stages.*")
        self.assertEqual(code, 1)
        self.assertIn("0 passed, 1 failed, 0 skipped, 12 not run\n", output)
        self.assertIn(f"- **failed** environment: {reason}\n", output)
        self.assertEqual(self.results()["ops.add"], {"status": "not run", "reason": reason})
        self.assertEqual(self.runs_of("stages_gpu_test"), [])

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
    def test_resume_runs_again_what_failed(self):
        chosen = ["--only", "ops.add", "ops.linear", "torch.flash"]
        self.assertEqual(self.check(*chosen, error="Cpu/add:")[0], 1)
        code, output, _ = self.check(*chosen, "--resume")
        self.assertEqual(code, 0)
        self.assertNotRegex(output, r"(?m)^ok +ops.linear")
        self.assertRegex(output, r"(?m)^ok +ops.add ")
        self.assertRegex(output, r"(?m)^skipped +torch.flash ")
        self.assertIn("2 passed, 0 failed, 1 skipped\n", output)
        self.assertEqual(len(self.runs_of("op_suite_gpu_test")), 2 + 2 + 1)  # and two listings

    def test_resume_from_a_file(self):
        self.assertEqual(self.check("--only", "stages.[01]")[0], 0)
        code, output, _ = self.check("--only", "stages.[012]", "--resume", str(self.results_file), "--output",
                                     str(self.path / "other"), "--archive", str(self.path / "other/packed.tar.gz"))
        self.assertEqual(code, 0, output)
        self.assertIn("2 checks passed before\n", output)
        with tarfile.open(self.path / "other/packed.tar.gz") as packed:
            self.assertEqual(sorted(packed.getnames()), ["gpu_check/results.json", "gpu_check/stages.2.log",
                                                         "gpu_check/summary.md"])

    def test_resume_with_other_programs(self):
        self.assertEqual(self.check("--only", "stages.0", "--resume")[0], 0)  # there is nothing to resume yet
        self.write("programs/gpt/inside/gpt", "another build")
        code, _, errors = self.check("--only", "stages.0", "--resume")
        self.assertEqual(code, 2)
        self.assertIn("results.json is of other programs\n  hint: begin anew, without --resume\n", errors)
        self.assertEqual(self.check("--only", "stages.0")[0], 0)

    def test_what_is_too_slow_beside_others_is_run_again_alone(self):
        code, output, _ = self.check("--only", "ops.add", "ops.linear", stuck="Cpu/add:")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"(?m)^FAILED +ops.add .*no progress for 100 s")
        self.assertRegex(output, r"(?m)^ok +ops.add ")
        self.assertTrue(self.results()["ops.add"]["again"])
        self.assertIn("\n- ops.add passed alone only: beside other checks it was too slow\n", output)
        (self.bundle / "was stuck").unlink()
        self.assertEqual(self.check("--only", "ops.add", "--jobs", "1", stuck="Cpu/add:")[0], 1)

    def start_hanging(self):
        process = self.start("--only", "environment", "demo.gpt.f32.host", "stages.0", hang="--ranks 2")
        deadline = time.monotonic() + 60
        while not (self.bundle / "pids").exists() or self.statuses().get("stages.0") != "passed":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        return process

    def test_what_is_known_survives_a_kill(self):
        self.edit("tools/gpu_check/results.py", "PACK_EVERY_S = 15", "PACK_EVERY_S = 0")
        process = self.start_hanging()
        process.kill()
        process.communicate(timeout=10)
        for pid in (self.bundle / "pids").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        expected = {"environment": "passed", "demo.gpt.f32.host": "running", "stages.0": "passed"}
        self.assertEqual(self.statuses(), expected)
        with tarfile.open(self.path / "out.tar.gz") as packed:
            self.assertIn("gpu_check/stages.0.log", packed.getnames())
        code, output, _ = self.check("--only", *expected, "--resume")
        self.assertEqual(code, 0)
        self.assertIn("1 checks passed before\n", output)  # and the machine, which is looked at again

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
        self.expect_usage_error("--skip: got 'x*', expected the name of a check, or a glob", "--skip", "ncu", "x*")
        self.expect_usage_error("--only and --skip leave no check", "--only", "ncu", "--skip", "*")
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
        self.assertIn("--resume: ", errors)
        self.assertIn("out/results.json: ", errors)

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
                         {"gpt", "recipe", "classifier", "llama", "resnet", "op_suite_gpu_test", "stages_gpu_test",
                          "cuda_kernel_bench"})


if __name__ == "__main__":
    unittest.main()
