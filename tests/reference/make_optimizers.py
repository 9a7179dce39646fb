"""Writes optimizers.json: the weights of a linear layer during 100 steps of each optimizer, in f32.

    python make_optimizers.py        # with PyTorch 2

RMSprop, Adagrad and Adafactor are torch.optim's. LAMB is written here from algorithm 2 of its paper (arXiv
1904.00962), Lion written here from the listing in its paper (arXiv
2302.06675, appendix A), and schedule-free AdamW from algorithm 1 of its paper (arXiv 2405.15682) with
the weights of its section 4.3: x is kept, and not computed from y and z as by the program under test.
The moving average of weights is that of torch.optim.swa_utils.get_ema_multi_avg_fn.

"outputs" are those of the layer with the weights for evaluation, where an optimizer has such.
"""

import json
import pathlib

import torch

STEPS = 100
KEPT = [1, 10, 50, 100]  # steps after which weights are kept
SAMPLES, INPUTS, OUTPUTS = 6, 5, 4


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                m = state["exp_avg"]
                update = (m * beta1 + p.grad * (1 - beta1)).sign()
                update = update + p * group["weight_decay"]
                p.sub_(group["lr"] * update)
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


class Lamb(torch.optim.Optimizer):
    """arXiv 1904.00962, algorithm 2, with the identity for phi."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.t = 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        group = self.param_groups[0]
        beta1, beta2 = group["betas"]
        for p in group["params"]:
            state = self.state[p]
            if not state:
                state.update(m=torch.zeros_like(p), v=torch.zeros_like(p))
            state["m"] = beta1 * state["m"] + (1 - beta1) * p.grad
            state["v"] = beta2 * state["v"] + (1 - beta2) * p.grad**2
            r = state["m"] / (1 - beta1**self.t)
            r = r / ((state["v"] / (1 - beta2**self.t)).sqrt() + group["eps"])
            r = r + group["weight_decay"] * p
            norm_p, norm_r = p.norm(), r.norm()
            ratio = norm_p / norm_r if norm_p > 0 and norm_r > 0 else 1.0
            p.sub_(group["lr"] * ratio * r)


class ScheduleFreeAdamW(torch.optim.Optimizer):
    """p holds y; state x and z."""

    def __init__(self, params, lr, betas, eps, weight_decay, warmup_steps):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      warmup_steps=warmup_steps))
        self.t, self.weight_sum = 0, 0.0

    @torch.no_grad()
    def step(self):
        self.t += 1
        group = self.param_groups[0]
        beta1, beta2 = group["betas"]
        lr = group["lr"] * min(1.0, self.t / max(1, group["warmup_steps"]))
        self.weight_sum += lr**2
        c = lr**2 / self.weight_sum
        for p in group["params"]:
            state = self.state[p]
            if not state:
                state.update(x=p.clone(), z=p.clone(), v=torch.zeros_like(p))
            x, z, v = state["x"], state["z"], state["v"]
            v.mul_(beta2).add_((1 - beta2) * p.grad**2)
            h = p.grad / ((v / (1 - beta2**self.t)).sqrt() + group["eps"])
            z.sub_(lr * (h + group["weight_decay"] * p))
            x.copy_((1 - c) * x + c * z)
            p.copy_((1 - beta1) * z + beta1 * x)

    def eval_weights(self, p):
        return self.state[p]["x"]


class AdamWWithEma(torch.optim.AdamW):
    def __init__(self, params, decay, **options):
        super().__init__(params, **options)
        self.decay = decay
        self.averages = {p: p.detach().clone() for p in params}

    def step(self):
        super().step()
        for p, average in self.averages.items():
            average.lerp_(p.detach(), 1 - self.decay)

    def eval_weights(self, p):
        return self.averages[p]


RUNS = [
    ("rmsprop", torch.optim.RMSprop, dict(lr=0.002, alpha=0.95, eps=1e-8, weight_decay=0.1)),
    ("rmsprop_centered", torch.optim.RMSprop,
     dict(lr=0.001, alpha=0.9, eps=1e-2, momentum=0.8, centered=True)),
    ("adagrad", torch.optim.Adagrad, dict(lr=0.02, lr_decay=0.01, eps=1e-10, weight_decay=0.1)),
    ("lion", Lion, dict(lr=0.001, betas=(0.9, 0.99), weight_decay=0.1)),
    ("lion_without_decay", Lion, dict(lr=0.002, betas=(0.8, 0.95), weight_decay=0.0)),
    ("schedule_free", ScheduleFreeAdamW,
     dict(lr=0.005, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1, warmup_steps=20)),
    ("schedule_free_without_warmup", ScheduleFreeAdamW,
     dict(lr=0.002, betas=(0.95, 0.999), eps=1e-8, weight_decay=0.0, warmup_steps=0)),
    ("adamw_ema", AdamWWithEma,
     dict(decay=0.9, lr=0.005, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)),
    ("lamb", Lamb, dict(lr=0.01, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1)),
    ("lamb_without_decay", Lamb, dict(lr=0.005, betas=(0.8, 0.999), eps=1e-6, weight_decay=0.0)),
    ("adafactor", torch.optim.Adafactor, dict(lr=0.02)),
    ("adafactor_with_decay", torch.optim.Adafactor,
     dict(lr=0.25, beta2_decay=-0.6, eps=(2**-23, 0.05), weight_decay=0.1)),
    ("sgd_rule", torch.optim.SGD, dict(lr=0.02, momentum=0.9, weight_decay=0.1, nesterov=True)),
    ("adam_rule", torch.optim.Adam,
     dict(lr=0.002, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1)),
    ("adadelta", torch.optim.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-5, weight_decay=0.1)),
    ("adamax", torch.optim.Adamax, dict(lr=0.002, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1)),
    ("radam", torch.optim.RAdam, dict(lr=0.002, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1)),
    ("radam_decoupled", torch.optim.RAdam,
     dict(lr=0.002, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1, decoupled_weight_decay=True)),
]

# torch.optim.AdamW and Adafactor multiply by 1 - lr weight_decay, whose rounding to f32 adds up over the steps.
IN_F64 = ["adamw_ema", "adafactor_with_decay", "adamax", "radam_decoupled"]


def rounded(*shape):
    return (torch.randn(*shape, dtype=torch.float64) * 1000).round().float() / 1000


def main():
    torch.manual_seed(7)
    x, y = rounded(SAMPLES, INPUTS), rounded(SAMPLES, OUTPUTS)
    weight, bias = rounded(OUTPUTS, INPUTS) / 2, rounded(OUTPUTS) / 2
    reference = {
        "x": x.flatten().tolist(), "y": y.flatten().tolist(),
        "weight": weight.flatten().tolist(), "bias": bias.tolist(),
        "samples": SAMPLES, "inputs": INPUTS, "outputs": OUTPUTS, "runs": [],
    }
    for name, make, options in RUNS:
        dtype = torch.float64 if name in IN_F64 else torch.float32
        w, b, inputs, targets = (t.detach().clone().to(dtype) for t in (weight, bias, x, y))
        w.requires_grad_(), b.requires_grad_()
        optimizer = make([w, b], **options)
        kept = {}
        for step in range(1, STEPS + 1):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(torch.nn.functional.linear(inputs, w, b), targets).backward()
            optimizer.step()
            if step in KEPT:
                kept[str(step)] = w.flatten().tolist() + b.tolist()
        run = {"name": name, "weights": kept}
        if hasattr(optimizer, "eval_weights"):
            with torch.no_grad():
                outputs = torch.nn.functional.linear(
                    inputs, optimizer.eval_weights(w), optimizer.eval_weights(b))
            run["outputs"] = outputs.flatten().tolist()
        reference["runs"].append(run)
    path = pathlib.Path(__file__).parent / "optimizers.json"
    path.write_text(json.dumps(reference, indent=0) + "\n")


if __name__ == "__main__":
    main()
