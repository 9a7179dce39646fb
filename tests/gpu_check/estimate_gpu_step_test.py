#!/usr/bin/env python3
"""estimate_gpu_step_test.py ESTIMATE BENCH: every kernel that the benchmark lists is in one class of the estimate,
floors are what bytes, FLOPs and instructions take at the ceilings, and measured times stand beside estimated ones.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(sys.argv.pop(2)).absolute()
SCRIPT = pathlib.Path(sys.argv.pop(1)).absolute()
sys.path.insert(0, str(SCRIPT.parent))
import estimate_gpu_step as estimate  # noqa: E402


class Estimate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "work.json"
        subprocess.run([str(BENCH), "--batch", "32", "--list", "--json", str(self.file)], check=True,
                       stdout=subprocess.DEVNULL)
        self.work = json.loads(self.file.read_text())

    def run_script(self, *flags):
        return subprocess.run([sys.executable, str(SCRIPT), "--work", str(self.file), *flags], capture_output=True,
                              text=True)

    def rows(self):
        return {row.name: row for row in estimate.rows_of(self.work)}

    def test_every_kernel_is_in_one_class(self):
        names = [kernel["name"] for kernel in self.work["kernels"] if kernel["times_per_step"] > 0]
        self.assertEqual([name for name in names if not estimate.is_known(name)], [])
        rows = self.rows()
        self.assertEqual(len(rows), len(estimate.CLASSES) + len(estimate.ATTENTION) + 2)
        flops = sum(kernel["times_per_step"] * kernel["flops"] for kernel in self.work["kernels"])
        self.assertAlmostEqual(sum(row.flops for row in rows.values()) / flops, 1, places=9)

    def test_nothing_is_faster_than_its_floor(self):
        for row in self.rows().values():
            self.assertGreaterEqual(row.ms[0], row.floor_ms() * 0.999, row.name)
            self.assertLessEqual(row.ms[1], row.ms[0], row.name)

    def test_floors(self):
        rows = self.rows()
        tokens = 32 * 1024
        head_flops = 3 * 2 * tokens * 768 * 50304
        self.assertAlmostEqual(rows["products, head"].floor_ms(), 1e3 * head_flops / 790e12, places=3)
        summed = 12 * (3 + 4) * (tokens + 1) * 768 * 2
        self.assertAlmostEqual(rows["bias gradients"].floor_ms(), 1e3 * summed / 4.3e12, places=3)
        tiles = 12 * 32 * 12 * 16 * 17 / 2
        slots = tiles * 4 * estimate.ATTENTION[0].issue_slots[0]
        self.assertAlmostEqual(rows["attention"].slots / slots, 1, places=9)

    def test_an_unknown_kernel_is_not_lost(self):
        self.work["kernels"].append({"name": "new", "op": "new", "times_per_step": 2, "flops": 0,
                                     "moved_bytes": 43 * 10**8})
        row = self.rows()["others"]
        self.assertAlmostEqual(row.floor_ms(), 2.0)
        self.assertAlmostEqual(row.ms[0], 2.0 / 0.85)
        self.assertIn("new", row.why)

    def test_the_table(self):
        done = self.run_script("--why")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ceilings: 790 TFLOP/s, 4.3 TB/s", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^sum +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +-$")
        self.assertRegex(done.stdout, r"(?m)^target 58.7 ms: reached, by the code as it is$")
        self.assertRegex(done.stdout, r"(?m)^cross entropy and gradient: .*instructions per element \[sass\]")

    def test_the_code_as_it_is_reaches_the_target(self):
        now, planned, _ = estimate.sums(estimate.rows_of(self.work))
        self.assertLessEqual(now, 58.7)
        self.assertLessEqual(planned, now)

    def test_figures_are_near_those_of_the_estimate(self):
        sys.path.insert(0, str(SCRIPT.parents[1] / "gpu_check"))
        import figures

        now = estimate.sums(estimate.rows_of(self.work))[0]
        by_default, gaps = estimate.by_first_proposals(self.work), estimate.GAPS_MS[0]
        self.assertAlmostEqual(figures.KERNELS_OF_STEP_MS / (by_default - gaps), 1, delta=0.05)
        default, tuned = by_default + estimate.CHECK_MS + estimate.PADDING_MS, now + estimate.PADDING_MS
        expected = {"ours stage 0": default, "ours stage 0, graph": default + estimate.GRAPH_MS,
                    "ours stage 0, tuned": tuned, "ours stage 0, graph, tuned": tuned + estimate.GRAPH_MS / 2}
        for _, name, ms in figures.STEPS_MS:
            if name.startswith("ours"):
                self.assertAlmostEqual(ms / expected.pop(name), 1, delta=0.06, msg=name)
        self.assertEqual(expected, {})
        for name, ms in figures.KERNELS_MS.items():  # the estimate is of another memory
            alone = [{**kernel, "times_per_step": 1} for kernel in self.work["kernels"] if kernel["name"] == name]
            by_estimate = estimate.by_first_proposals({**self.work, "kernels": alone}) - gaps
            self.assertLessEqual(max(ms / by_estimate, by_estimate / ms), figures.FAR, msg=name)

    def test_a_target_that_is_missed(self):
        for kernel in self.work["kernels"]:
            kernel["flops"] *= 2
        self.file.write_text(json.dumps(self.work))
        self.assertRegex(self.run_script().stdout, r"(?m)^target 58.7 ms: missed by \d+\.\d ms, by the code as it is$")

    def test_measured_times(self):
        for kernel in self.work["kernels"]:
            kernel["seconds"] = 0.001
        self.file.write_text(json.dumps(self.work))
        done = self.run_script()
        self.assertRegex(done.stdout, r"(?m)^bias gradients .* 24.00$")
        self.assertRegex(done.stdout, r"(?m)^attention gradient: k, v .* -$")
        self.assertRegex(done.stdout, r"(?m)^attention gradient: dot .* 12.00$")

    def test_a_file_that_is_none(self):
        self.file.write_text("{}")
        done = self.run_script()
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected what cuda_kernel_bench --json writes", done.stderr)


if __name__ == "__main__":
    unittest.main()
