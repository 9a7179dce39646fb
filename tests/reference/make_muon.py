"""Writes muon.json: the weights of a network of three layers during 50 steps of torch.optim.Muon.

    python make_muon.py        # with PyTorch 2.9 or later

Its matrices are tall, square and wide; biases are trained by torch.optim.AdamW. PyTorch makes the
momentum orthogonal in bf16; here its function is made to compute in f32, as the program under test
does, by replacing that one word of its source.
"""

import inspect
import json
import pathlib

import torch
import torch.optim._muon as torch_muon

STEPS = 50
KEPT = [1, 50]  # steps after which weights are kept
SAMPLES, WIDTHS = 8, [12, 20, 20, 6]

RUNS = [
    ("nesterov", dict(lr=0.02, weight_decay=0.1)),
    ("match_rms_adamw", dict(lr=0.01, weight_decay=0.05, momentum=0.9, nesterov=False, ns_steps=4,
                             adjust_lr_fn="match_rms_adamw")),
]
ADAMW = dict(lr=0.005, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)


def compute_in_f32():
    source = inspect.getsource(torch_muon._zeropower_via_newtonschulz)
    assert source.count("torch.bfloat16") == 1
    exec(source.replace("torch.bfloat16", "torch.float32"), torch_muon.__dict__)


def rounded(*shape):
    return (torch.randn(*shape, dtype=torch.float64) * 1000).round().float() / 1000


def main():
    torch.manual_seed(11)
    compute_in_f32()
    x, y = rounded(SAMPLES, WIDTHS[0]), rounded(SAMPLES, WIDTHS[-1])
    weights = [rounded(n, m) / 4 for m, n in zip(WIDTHS, WIDTHS[1:])]
    biases = [rounded(n) / 4 for n in WIDTHS[1:]]
    reference = {
        "x": x.flatten().tolist(), "y": y.flatten().tolist(), "samples": SAMPLES, "widths": WIDTHS,
        "weights": [w.flatten().tolist() for w in weights],
        "biases": [b.tolist() for b in biases], "runs": [],
    }
    for name, options in RUNS:
        ws = [w.clone().requires_grad_() for w in weights]
        bs = [b.clone().requires_grad_() for b in biases]
        optimizers = [torch.optim.Muon(ws, **options), torch.optim.AdamW(bs, **ADAMW)]
        kept = {}
        for step in range(1, STEPS + 1):
            h = x
            for i, (w, b) in enumerate(zip(ws, bs)):
                h = torch.nn.functional.linear(h, w, b)
                if i + 1 < len(ws):
                    h = torch.tanh(h)
            for optimizer in optimizers:
                optimizer.zero_grad()
            torch.nn.functional.mse_loss(h, y).backward()
            for optimizer in optimizers:
                optimizer.step()
            if step in KEPT:
                kept[str(step)] = [t.flatten().tolist() for t in ws + bs]
        reference["runs"].append({"name": name, "after": kept})
    path = pathlib.Path(__file__).parent / "muon.json"
    path.write_text(json.dumps(reference).replace("], ", "],\n") + "\n")


if __name__ == "__main__":
    main()
