"""Writes weighted_loss.json: training on a data set whose last batch is partly filled, in f32.

    python make_weighted_loss.py        # with PyTorch 2

22 samples, in steps of at most 16 (then a step of 16 and one of 6 in turn) or 48 (all of them). The loss
is the mean over the samples of a step: of all alike, or by weights of their own.
"""

import json
import pathlib

import torch

SAMPLES, INPUTS, HIDDEN, CLASSES = 22, 5, 8, 3
STEPS = 6


def rounded(*shape):
    return (torch.randn(*shape, dtype=torch.float64) * 1000).round().float() / 1000


def main():
    torch.manual_seed(11)
    x = rounded(SAMPLES, INPUTS)
    y = torch.randint(CLASSES, (SAMPLES,))
    weights = 0.25 + torch.arange(SAMPLES) % 5
    first = {"hidden.weight": rounded(HIDDEN, INPUTS) / 2, "hidden.bias": rounded(HIDDEN) / 2,
             "output.weight": rounded(CLASSES, HIDDEN) / 2, "output.bias": rounded(CLASSES) / 2}
    reference = {
        "samples": SAMPLES, "inputs": INPUTS, "hidden": HIDDEN, "classes": CLASSES,
        "x": x.flatten().tolist(), "y": y.tolist(), "weights": weights.tolist(),
        "parameters": {name: value.flatten().tolist() for name, value in first.items()}, "runs": [],
    }
    for step_samples in [16, 48]:
        for has_weights in [False, True]:
            p = {name: value.clone().requires_grad_() for name, value in first.items()}
            sgd = torch.optim.SGD(p.values(), lr=0.1, momentum=0.9)
            losses, begin = [], 0
            for _ in range(STEPS):
                end = min(begin + step_samples, SAMPLES)
                rows = slice(begin, end)
                h = torch.tanh(torch.nn.functional.linear(x[rows], p["hidden.weight"], p["hidden.bias"]))
                logits = torch.nn.functional.linear(h, p["output.weight"], p["output.bias"])
                w = weights[rows] if has_weights else torch.ones(end - begin)
                each = torch.nn.functional.cross_entropy(logits, y[rows], reduction="none")
                loss = (each * w).sum() / w.sum()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                losses.append(loss.item())
                begin = end % SAMPLES
            reference["runs"].append({
                "step_samples": step_samples, "has_weights": has_weights, "losses": losses,
                "parameters": {name: value.flatten().tolist() for name, value in p.items()}})
    path = pathlib.Path(__file__).parent / "weighted_loss.json"
    path.write_text(json.dumps(reference, indent=0) + "\n")


if __name__ == "__main__":
    main()
