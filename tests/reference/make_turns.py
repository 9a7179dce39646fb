"""Writes turns.json: a generator and a critic that are trained in turns, each by an optimizer of its own, in f32.

    python make_turns.py        # with PyTorch 2

Each step has its own 12 samples. The critic takes two steps, then the generator one. Before each step both losses are
written down.
"""

import json
import pathlib

import torch
from torch.nn import functional as F

STEPS, SAMPLES, NOISE, CHANNELS, HIDDEN = 12, 12, 4, 6, 8


def rounded(*shape):
    return (torch.randn(*shape, dtype=torch.float64) * 1000).round().float() / 1000


def main():
    torch.manual_seed(5)
    noise, real = rounded(STEPS, SAMPLES, NOISE), rounded(STEPS, SAMPLES, CHANNELS)
    first = {}
    for player, inputs, outputs in [("generator", NOISE, CHANNELS), ("critic", CHANNELS, 1)]:
        first[f"{player}.hidden.weight"] = rounded(HIDDEN, inputs) / 2
        first[f"{player}.hidden.bias"] = rounded(HIDDEN) / 2
        first[f"{player}.output.weight"] = rounded(outputs, HIDDEN) / 2
        first[f"{player}.output.bias"] = rounded(outputs) / 2
    p = {name: value.clone().requires_grad_() for name, value in first.items()}

    def run(player, x):
        h = torch.tanh(F.linear(x, p[f"{player}.hidden.weight"], p[f"{player}.hidden.bias"]))
        return F.linear(h, p[f"{player}.output.weight"], p[f"{player}.output.bias"])

    of = {player: [p[name] for name in p if name.startswith(player)] for player in ("generator", "critic")}
    optimizers = {
        "generator": torch.optim.Adam(of["generator"], lr=0.02, betas=(0.5, 0.999)),
        "critic": torch.optim.AdamW(of["critic"], lr=0.03, weight_decay=0.1),
    }
    losses = []
    for step in range(STEPS):
        made = run("generator", noise[step])
        critic_loss = (F.softplus(-run("critic", real[step])) + F.softplus(run("critic", made.detach()))).mean()
        generator_loss = F.softplus(-run("critic", made)).mean()
        losses.append([critic_loss.item(), generator_loss.item()])
        player = "generator" if step % 3 == 2 else "critic"
        optimizers[player].zero_grad()
        (critic_loss if player == "critic" else generator_loss).backward()
        optimizers[player].step()
    path = pathlib.Path(__file__).parent / "turns.json"
    path.write_text(json.dumps({
        "made_with": f"torch {torch.__version__}", "steps": STEPS, "samples": SAMPLES,
        "noise": noise.flatten().tolist(), "real": real.flatten().tolist(), "losses": losses,
        "first": {name: value.flatten().tolist() for name, value in first.items()},
        "last": {name: value.flatten().tolist() for name, value in p.items()}}, indent=0) + "\n")


if __name__ == "__main__":
    main()
