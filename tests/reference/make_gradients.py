"""Writes gradients.json: steps of models whose losses need gradients of gradients or gradients of their
own, in f32.

    python make_gradients.py        # with PyTorch 2

"penalty": a critic with a gradient penalty (arXiv 1704.00028). "sign": a layer of signs, trained by a
straight-through estimator (arXiv 1602.02830, section 1.3). "curvature": a loss with the square of the
gradient for a parameter, of a model with gelu. "norms": the penalty of a critic with norms and a softmax.
"inner step": the loss after a step of gradient descent on another loss (arXiv 1703.03400).
"""

import json
import pathlib

import torch
from torch.nn.functional import cross_entropy, gelu, layer_norm, linear, rms_norm, silu

SAMPLES, INPUTS, HIDDEN = 12, 4, 8
STEPS = 4


class SignWithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() <= 1, dy, 0.0)


def rounded(*shape):
    return (torch.randn(*shape, dtype=torch.float64) * 1000).round().float() / 1000


def penalty_loss(p, x, y):
    x = x.clone().requires_grad_()
    h = silu(linear(x, p["first.weight"], p["first.bias"]))
    h = torch.tanh(linear(h, p["second.weight"], p["second.bias"]))
    score = linear(h, p["third.weight"], p["third.bias"])
    (dx,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    slope = (dx.square().sum(1) + 1e-12).sqrt()
    return ((score - y) ** 2).mean() + 0.5 * ((slope - 1) ** 2).mean()


def sign_loss(p, x, y):
    h = SignWithGradient.apply(linear(x, p["first.weight"], p["first.bias"]))
    h = silu(linear(h, p["second.weight"], p["second.bias"]))
    return ((linear(h, p["third.weight"], p["third.bias"]) - y) ** 2).mean()


def curvature_loss(p, x, y):
    h = gelu(linear(x, p["first.weight"], p["first.bias"]), approximate="tanh")
    h = gelu(linear(h, p["second.weight"], p["second.bias"]))
    # The loss of each pair of samples by itself, as with micro-batches.
    terms = []
    for i in range(0, SAMPLES, 2):
        score = linear(h[i:i + 2], p["third.weight"], p["third.bias"])
        error = ((score - y[i:i + 2]) ** 2).mean()
        (dw,) = torch.autograd.grad(error, p["second.weight"], create_graph=True)
        terms.append(error + 0.1 * dw.square().sum())
    return sum(terms) / len(terms)


def norms_loss(p, x, y):
    x = x.clone().requires_grad_()
    gain = p["second.bias"] + 1
    h = layer_norm(linear(x, p["first.weight"]), (HIDDEN,), gain, p["first.bias"])
    h = rms_norm(linear(torch.tanh(h), p["second.weight"]), (HIDDEN,), gain, 1e-6)
    score = linear(h.softmax(1) + h.log_softmax(1), p["third.weight"], p["third.bias"])
    (dx,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    slope = (dx.square().sum(1) + 1e-12).sqrt()
    return 0.02 * (((score - y) ** 2).mean() + 0.5 * ((slope - 1) ** 2).mean())


def inner_step_loss(p, x, y):
    terms = []
    for i in range(0, SAMPLES, 2):
        h = torch.tanh(linear(x[i:i + 2], p["first.weight"], p["first.bias"]))

        def loss_with(weight):
            logits = linear(h, weight, p["second.bias"])
            error = ((linear(silu(logits), p["third.weight"], p["third.bias"]) - y[i:i + 2]) ** 2).mean()
            return cross_entropy(logits, torch.tensor([1, 6])) + error

        (dw,) = torch.autograd.grad(loss_with(p["second.weight"]), p["second.weight"], create_graph=True)
        terms.append(loss_with(p["second.weight"] - 0.5 * dw))
    return sum(terms) / len(terms)


def main():
    torch.manual_seed(3)
    x, y = rounded(SAMPLES, INPUTS), rounded(SAMPLES, 1)
    first = {}
    for name, outputs, inputs in [("first", HIDDEN, INPUTS), ("second", HIDDEN, HIDDEN),
                                  ("third", 1, HIDDEN)]:
        first[name + ".weight"] = rounded(outputs, inputs) / 2
        first[name + ".bias"] = rounded(outputs) / 2
    reference = {
        "x": x.flatten().tolist(), "y": y.flatten().tolist(),
        "parameters": {name: value.flatten().tolist() for name, value in first.items()}, "runs": [],
    }
    for name, loss_of in [("penalty", penalty_loss), ("sign", sign_loss),
                          ("curvature", curvature_loss), ("norms", norms_loss),
                          ("inner step", inner_step_loss)]:
        p = {key: value.clone().requires_grad_() for key, value in first.items()}
        sgd = torch.optim.SGD(p.values(), lr=0.02, momentum=0.5)
        losses = []
        for _ in range(STEPS):
            loss = loss_of(p, x, y)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(loss.item())
        reference["runs"].append({
            "name": name, "losses": losses,
            "parameters": {key: value.flatten().tolist() for key, value in p.items()}})
    path = pathlib.Path(__file__).parent / "gradients.json"
    path.write_text(json.dumps(reference, indent=0) + "\n")


if __name__ == "__main__":
    main()
