#!/usr/bin/env python3
"""programs_test.py GPU_CHECK PROGRAM...: our programs accept the flags that gpu_check gives them, and their
reports have the fields that it reads. Runs on the CPU.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(sys.argv[1]).absolute().parent))
PROGRAMS = {pathlib.Path(path).name: str(pathlib.Path(path).absolute()) for path in sys.argv[2:]}
del sys.argv[1:]

import demo_checks  # noqa: E402
import full_size  # noqa: E402
from check_runner import CheckRun  # noqa: E402
from sessions import Sessions  # noqa: E402

SMALL = argparse.Namespace(layers=2, heads=2, embd=64, context=32, vocabulary=300, batch=2, lr=3e-4)


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        (path / "work").mkdir()
        self.run_ = CheckRun(path / "log", path / "work", 250, None, Sessions())
        for module in (demo_checks, full_size):
            module.program = PROGRAMS.__getitem__
        full_size.default_sizes = lambda: SMALL

    def test_demos(self):
        for model in demo_checks.MODELS:
            with self.subTest(model):
                training = demo_checks.Demo(self.run_, model, "bf16").train("--device cpu")
                self.assertEqual(len(training.losses), demo_checks.STEPS)
                self.assertEqual(len(training.bits()["param_sha256"]), 64)

    def test_the_full_size(self):
        data = full_size.write_tokens(self.run_.folder / "tokens.bin", SMALL.vocabulary)
        for way in [*full_size.WAYS, f"--gemm-choices {self.run_.folder / 'choices.json'}"]:
            command = full_size.command(data, f"--steps 3 --micro-batches 2 {way}")
            self.assertIn("cuda", command)
            # All flags are known: without a GPU the only error is that there is none.
            self.assertRegex(self.run_.execute([*command, "--plan"]).output, "--device cuda: |samples per step, bf16")
        training = [word.replace("cuda", "cpu") for word in full_size.command(data, "--steps 3 --micro-batches 2")]
        report = self.run_.folder / "report.json"
        self.run_.execute_well([*training, "--report", str(report)])
        self.assertEqual(len(json.loads(report.read_text())["steps"]), 3)


if __name__ == "__main__":
    unittest.main()
