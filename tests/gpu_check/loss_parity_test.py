#!/usr/bin/env python3
"""loss_parity_test.py LOSS_PARITY GPT: the batches that loss_parity.py gives PyTorch are those that our demo trains on,
and the weights that it writes those that the demo begins with: a model whose logits are the same at every position has a
loss that only the batch's targets decide.
"""

import array
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

GPT = pathlib.Path(sys.argv.pop(2)).absolute()
SCRIPT = pathlib.Path(sys.argv.pop(1)).absolute()
sys.path.insert(0, str(SCRIPT.parent))
import loss_parity  # noqa: E402

CHANNELS, CONTEXT, VOCABULARY, BATCH, STEPS = 8, 16, 40, 3, 4
SHAPES = {
    "token_embedding.weight": [VOCABULARY, CHANNELS], "position_embedding.weight": [CONTEXT, CHANNELS],
    "final_norm.weight": [CHANNELS], "final_norm.bias": [CHANNELS],
    **{f"blocks.0.{norm}.{part}": [CHANNELS] for norm in ("norm1", "norm2") for part in ("weight", "bias")},
    **{f"blocks.0.{layer}.{part}": [outputs * CHANNELS] + [inputs * CHANNELS] * (part == "weight")
       for layer, outputs, inputs in (("attention.qkv", 3, 1), ("attention.projection", 1, 1), ("mlp.expand", 4, 1),
                                      ("mlp.contract", 1, 4)) for part in ("weight", "bias")},
}


class LossParity(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def test_philox_is_that_of_the_paper(self):
        self.assertEqual(loss_parity.philox((0, 0, 0, 0), (0, 0)), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8))

    def write_weights(self):
        """Token v has the logit sin(v) at every position."""
        values = {name: array.array("f", [0.0] * math.prod(shape)) for name, shape in SHAPES.items()}
        values["final_norm.bias"][0] = 1.0
        for token in range(VOCABULARY):
            values["token_embedding.weight"][token * CHANNELS] = math.sin(token)
        weights = self.path / "weights.safetensors"
        loss_parity.write_safetensors(weights, {name: (SHAPES[name], values[name].tobytes()) for name in SHAPES})
        return weights

    def test_batches_are_those_of_the_demo(self):
        data = loss_parity.write_tokens(self.path / "tokens.bin", VOCABULARY)
        report = self.path / "report.json"
        sizes = {"layers": 1, "heads": 1, "embd": CHANNELS, "context": CONTEXT, "vocab": VOCABULARY, "batch": BATCH,
                 "micro-batches": 1, "steps": STEPS, "lr": 0, "eval-windows": 1, "sample-tokens": 0, "warmup-steps": 0}
        flags = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
        subprocess.run([str(GPT), *flags, "--data", str(data), "--init", str(self.write_weights()), "--report",
                        str(report)], check=True, stdout=subprocess.DEVNULL)
        losses = [step["loss"] for step in json.loads(report.read_text())["steps"]]

        tokens = loss_parity.read_tokens(data)
        normaliser = math.log(sum(math.exp(math.sin(token)) for token in range(VOCABULARY)))
        self.assertEqual(len(set(losses)), STEPS)
        for step, loss in enumerate(losses):
            starts = loss_parity.window_starts(step, BATCH, CONTEXT, len(tokens))
            targets = [token for start in starts for token in tokens[start + 1:start + CONTEXT + 1]]
            expected = normaliser - sum(map(math.sin, targets)) / len(targets)
            self.assertAlmostEqual(loss, expected, places=5)

    def test_without_pytorch_or_a_gpu_it_is_skipped(self):
        files = ["--data", "none", "--weights", "none", "--json", str(self.path / "json")]
        command = [sys.executable, str(SCRIPT), *files]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "^SKIPPED: ")
        self.assertFalse((self.path / "json").exists())

    def test_what_it_needs(self):
        done = subprocess.run([sys.executable, str(SCRIPT), "--data", "x"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected --data, --weights and --json, or --write-tokens", done.stderr)


if __name__ == "__main__":
    unittest.main()
