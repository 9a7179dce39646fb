#!/usr/bin/python3
"""Makes the reference files of this folder with PyTorch, an implementation independent of ours.

Run, outside of the repository for what pip installs:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch==2.15.0 numpy
    /tmp/torch/bin/python tests/reference/make_reference.py                 # rewrites the files here
    /tmp/torch/bin/python tests/reference/make_reference.py --output /tmp/x # or puts them elsewhere

Each case is trained for 20 steps, float32 on one thread, every step with its own batch, once per optimizer and
always from the same initial parameters. Batches divide by 2 and by 3, so that ranks can share them. It writes

  <case>.safetensors  the initial parameters by name; `data.x` and `data.y`, whose first dim is the step.
                      Floats are F32, tokens and class numbers I64. Weights of Linear are (out, in).
  <case>.json         {"case", "model": {dims}, "batch", "steps", "loss", "made_with",
                       "optimizers": [{"name", "optimizer": "sgd|adam|adamw", "hyperparameters",
                                       "losses", "losses_float64", "losses_bfloat16",
                                       "final_param_sums", "final_param_sums_float64",
                                       "max_norm", "grad_norms", "grad_norms_float64"}, ...],
                       "zero_gradient": {name: reason}}

losses[i] is the loss before update i. Runs with max_norm have their gradients clipped by clip_grad_norm_, which
returns grad_norms[i]; the others have none of the three. The `_float64` twins come from the same run in double precision: the gap
between the two is how much float32 rounding alone moves the numbers, hence the scale for a tolerance.
`losses_bfloat16` come from a run in float32 with the forward pass under torch.autocast. Parameters
under `zero_gradient` get nothing but rounding noise as their gradient (at least in part), which Adam scales up to
full-size updates: their sums say nothing unless weight decay is in the gradient.
"""

import argparse
import json
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor, nn

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools" / "bench"))
from torch_models import Classifier, Gpt, LinearStack  # noqa: E402

STEPS = 20
Tensors = Dict[str, Tensor]

OPTIMIZERS: Dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}


@dataclass
class Case:
    """A model with its data; data tensors are (steps, batch, ...)."""

    name: str
    dims: Dict[str, int]
    batch: int
    loss: str
    model: nn.Module
    x: Tensor
    y: Tensor
    sgd_lr: float
    adam_lr: float
    max_norm: float = 0.0  # between the norms of the run's gradients; 0: there is no clipped run
    zero_gradient: Dict[str, str] = field(default_factory=dict)

    def optimizers(self) -> List[Tuple[str, str, Dict[str, Any], float]]:
        """(name, optimizer, hyperparameters, max_norm) of every run."""
        adam = {"lr": self.adam_lr, "betas": [0.9, 0.999], "eps": 1e-8}
        sgd = {"lr": self.sgd_lr, "momentum": 0.9, "dampening": 0.0, "nesterov": False, "weight_decay": 0.01}
        runs = [
            ("sgd", "sgd", sgd, 0.0),
            ("adam", "adam", {**adam, "weight_decay": 0.0}, 0.0),
            ("adam_decay", "adam", {**adam, "weight_decay": 0.01}, 0.0),
            ("adamw", "adamw", {**adam, "weight_decay": 0.01}, 0.0),
        ]
        if self.max_norm > 0:
            runs.append(("sgd_clipped", "sgd", sgd, self.max_norm))
        return runs


def mlp_case() -> Case:
    dims = {"depth": 4, "width": 32}
    batch = 12
    model = LinearStack(**dims)
    x = torch.randn(STEPS, batch, dims["width"])
    y = x @ (torch.randn(dims["width"], dims["width"]) / dims["width"] ** 0.5)
    return Case("mlp", dims, batch, "mse", model, x, y, sgd_lr=0.1, adam_lr=0.01, max_norm=0.3)


def classifier_case() -> Case:
    dims = {"inputs": 128, "hidden": 64, "classes": 10}
    batch = 12
    model = Classifier(**dims)
    centers = torch.randn(dims["classes"], dims["inputs"])
    y = torch.randint(dims["classes"], (STEPS, batch))
    x = 0.5 * centers[y] + torch.randn(STEPS, batch, dims["inputs"])
    return Case("classifier", dims, batch, "cross_entropy", model, x, y, sgd_lr=0.02, adam_lr=0.002)


def gpt_case() -> Case:
    dims = {"layers": 2, "heads": 2, "channels": 32, "context": 16, "vocabulary": 61}
    batch = 6
    model = Gpt(**dims)
    spread_out(model)
    tokens = token_walks(STEPS * batch, dims["context"] + 1, dims["vocabulary"])
    tokens = tokens.view(STEPS, batch, -1)
    reason = "softmax cancels the key bias (the middle third): its gradient is zero"
    zero_gradient = {f"blocks.{i}.attention.qkv.bias": reason for i in range(dims["layers"])}
    x, y = tokens[:, :, :-1].contiguous(), tokens[:, :, 1:].contiguous()
    return Case("gpt", dims, batch, "cross_entropy", model, x, y, 0.05, 0.005, 2.0, zero_gradient)


def spread_out(model: nn.Module) -> None:
    """Initial values at which no part of the model is close to idle: no zero bias, no norm weight of one."""
    with torch.no_grad():
        for name, param in model.named_parameters():
            param.normal_(std=0.1 if param.dim() == 1 else 0.2)
            if "norm" in name and name.endswith("weight"):
                param.add_(1.0)


def token_walks(count: int, length: int, vocabulary: int) -> Tensor:
    """(count, length) tokens; the next token is a fixed function of the last one, but random every fourth time."""
    walk = [torch.randint(vocabulary, (count,))]
    for _ in range(length - 1):
        surprise = torch.randint(4, (count,)) == 0
        walk.append(torch.where(surprise, torch.randint(vocabulary, (count,)), (5 * walk[-1] + 7) % vocabulary))
    return torch.stack(walk, dim=1)


def parameters(model: nn.Module) -> Tensors:
    return {name: param.detach().clone() for name, param in model.named_parameters()}


def train(case: Case, initial: Tensors, optimizer: str, hyper: Dict[str, Any], max_norm: float,
          dtype: torch.dtype, autocast: bool = False) -> Dict[str, Any]:
    """The losses of one run, the sum of every final parameter, and the norms of a clipped run."""
    model = case.model.to(dtype)
    model.load_state_dict(initial)
    updater = OPTIMIZERS[optimizer](model.parameters(), **hyper)
    losses = []
    norms = []
    for step in range(STEPS):
        x = case.x[step].to(dtype) if case.x.is_floating_point() else case.x[step]
        y = case.y[step].to(dtype) if case.y.is_floating_point() else case.y[step]
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = model(x, y)
        updater.zero_grad(set_to_none=True)
        loss.backward()
        if max_norm > 0:
            norms.append(nine_digits(nn.utils.clip_grad_norm_(model.parameters(), max_norm).item()))
        updater.step()
        losses.append(nine_digits(loss.item()))
    sums = {name: nine_digits(value.double().sum().item()) for name, value in parameters(model).items()}
    return {"losses": losses, "final_param_sums": sums, **({"grad_norms": norms} if norms else {})}


def nine_digits(value: float) -> float:
    return float(f"{value:.9g}")


def reference(case: Case, initial: Tensors) -> Dict[str, Any]:
    """What goes into <case>.json."""
    runs = []
    for name, optimizer, hyper, max_norm in case.optimizers():
        single = train(case, initial, optimizer, hyper, max_norm, torch.float32)
        double = train(case, initial, optimizer, hyper, max_norm, torch.float64)
        half = train(case, initial, optimizer, hyper, max_norm, torch.float32, autocast=True)
        runs.append({"name": name, "optimizer": optimizer, "hyperparameters": hyper,
                     **({"max_norm": max_norm} if max_norm > 0 else {}), **single,
                     **{key + "_float64": value for key, value in double.items()},
                     "losses_bfloat16": half["losses"]})
    return {"case": case.name, "model": case.dims, "batch": case.batch, "steps": STEPS, "loss": case.loss,
            "made_with": f"torch {torch.__version__}", "optimizers": runs, "zero_gradient": case.zero_gradient}


def save_safetensors(path: Path, tensors: Tensors) -> None:
    """u64 length of the header, JSON header padded with spaces to 8 bytes, data: wide types first, then by name."""
    type_names = {torch.float32: "F32", torch.int64: "I64"}
    header: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
    chunks: List[bytes] = []
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        chunk = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": type_names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [end, end + len(chunk)]}
        end += len(chunk)
        chunks.append(chunk)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def print_summary(written: Dict[str, Any]) -> None:
    for run in written["optimizers"]:
        gap = max(abs(a - b) for a, b in zip(run["losses"], run["losses_float64"]))
        print(f"{written['case']:<11} {run['name']:<11} loss {run['losses'][0]:.6f} -> {run['losses'][-1]:.6f}, "
              f"float32 and float64 differ by at most {gap:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the PyTorch reference files.")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="folder to write to")
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for seed, make_case in enumerate([mlp_case, classifier_case, gpt_case], start=1):
        torch.manual_seed(seed)
        case = make_case()
        initial = parameters(case.model)
        save_safetensors(output / f"{case.name}.safetensors", {**initial, "data.x": case.x, "data.y": case.y})
        written = reference(case, initial)
        (output / f"{case.name}.json").write_text(json.dumps(written, indent=1) + "\n")
        print_summary(written)


if __name__ == "__main__":
    main()
