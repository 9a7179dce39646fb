#!/usr/bin/env python3
"""How many steps Muon needs for the validation loss of AdamW, on prose, each at its best rate.

    bazel build -c opt //models/gpt && tools/bench/compare_optimizers.py

AdamW trains the GPT of the flags below for --steps steps at every rate of --adamw; Muon, which has
the blocks' matrices and leaves the rest to AdamW at its best rate, for three quarters of them at
every rate of --muon. Every run has its own cosine schedule, from the same warm-up to a tenth of its
rate, the same weights at the start and the same order of the data: the documentation of Python.
"""

import argparse
import re
import subprocess
import sys

MODEL = ["--layers", "4", "--heads", "4", "--embd", "128", "--context", "128", "--batch", "16"]
SCHEDULE = ["--lr-schedule", "cosine", "--warmup-steps", "40", "--final-lr-factor", "0.1"]
QUIET = ["--sample-tokens", "0", "--eval-every", "1000000", "--eval-windows", "512",
         "--log-level", "warn"]


def validation_loss(binary, steps, flags):
    command = [binary, *MODEL, *SCHEDULE, *QUIET, "--steps", str(steps), *flags]
    output = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"validation  loss ([0-9.]+) nats", output.stdout)
    if output.returncode != 0 or not found:
        sys.exit(f"{' '.join(command)}\n{output.stdout[-2000:]}{output.stderr[-2000:]}")
    return float(found.group(1))


def best(title, steps, rates, loss_at):
    print(f"{title}, {steps} steps")
    losses = {}
    for rate in rates:
        losses[rate] = loss_at(rate)
        print(f"  rate {rate:<8g} validation loss {losses[rate]:.4f}", flush=True)
    rate = min(losses, key=losses.get)
    if rate in (min(rates), max(rates)):
        print(f"  the best rate, {rate:g}, is the first or last that was tried")
    return rate, losses[rate]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpt", default="bazel-bin/models/gpt/gpt", help="the program")
    parser.add_argument("--steps", type=int, default=800, help="of AdamW")
    parser.add_argument("--adamw", type=float, nargs="+",
                        default=[5e-4, 1e-3, 2e-3, 4e-3, 8e-3])
    parser.add_argument("--muon", type=float, nargs="+", default=[0.01, 0.02, 0.04, 0.08])
    options = parser.parse_args()

    adamw_rate, adamw_loss = best(
        "AdamW", options.steps, options.adamw,
        lambda rate: validation_loss(options.gpt, options.steps, ["--lr", str(rate)]))
    fewer = options.steps * 3 // 4
    _, muon_loss = best(
        "Muon", fewer, options.muon,
        lambda rate: validation_loss(options.gpt, fewer, [
            "--optimizer", "muon", "--lr", str(adamw_rate), "--muon-lr", str(rate)]))
    reached = "reaches" if muon_loss <= adamw_loss else "does not reach"
    print(f"Muon {reached} AdamW's {adamw_loss:.4f} in 75 % of the steps: {muon_loss:.4f}")
    sys.exit(0 if muon_loss <= adamw_loss else 1)


if __name__ == "__main__":
    main()
