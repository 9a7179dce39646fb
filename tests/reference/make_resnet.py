#!/usr/bin/python3
"""Makes resnet.json and resnet.safetensors with PyTorch: 20 steps of a small ResNet, in double precision.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tests/reference/make_resnet.py

The model is that of models/resnet/model.h, with its names. A step has three micro-batches, each normalised by its own
statistics; the running ones become 0.9 of what they were and 0.1 of the mean over the micro-batches. The file
resnet.json holds {"made_with", "model": sizes, "batch": of a micro-batch, "lr", "momentum", "losses"}, the other one
"initial.<name>" and "final.<name>" of parameters and buffers, and "data.x" and "data.y", whose first dims are the step
and the micro-batch.
"""

import json
from pathlib import Path
from typing import Dict, List

import torch
import torch.nn.functional as F
from make_reference import save_safetensors
from torch import Tensor, nn

STEPS, MICRO_BATCHES, BATCH = 20, 3, 4
WIDTHS, CLASSES, SIZE = [4, 8], 5, 8
LR, MOMENTUM = 0.05, 0.9


class BatchNorm(nn.Module):
    """BatchNorm2d that leaves its running statistics alone until end_step()."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = nn.Parameter(torch.rand(channels) - 0.5)
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.means: List[Tensor] = []
        self.variances: List[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.means.append(x.detach().mean((0, 2, 3)))
        self.variances.append(x.detach().var((0, 2, 3)))
        return F.batch_norm(x, None, None, self.weight, self.bias, training=True)

    def end_step(self) -> None:
        self.running_mean = 0.9 * self.running_mean + 0.1 * torch.stack(self.means).mean(0)
        self.running_var = 0.9 * self.running_var + 0.1 * torch.stack(self.variances).mean(0)
        self.means, self.variances = [], []


class ConvNorm(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = BatchNorm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = ConvNorm(inputs, outputs, 3, stride)
        self.second = ConvNorm(outputs, outputs, 3, 1)
        self.shortcut = ConvNorm(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(1, WIDTHS[0], 3, 1)
        self.blocks = nn.ModuleList([Block(WIDTHS[0], WIDTHS[0], 1), Block(WIDTHS[0], WIDTHS[1], 2)])
        self.output = nn.Linear(WIDTHS[1], CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.output(x.mean((2, 3)))


def state(model: nn.Module, prefix: str) -> Dict[str, Tensor]:
    return {f"{prefix}.{name}": value.detach().float().clone() for name, value in model.state_dict().items()}


def main() -> None:
    torch.manual_seed(22)
    model = ResNet()
    tensors = state(model, "initial")
    x = torch.randn(STEPS, MICRO_BATCHES, BATCH, 1, SIZE, SIZE)
    y = torch.randint(CLASSES, (STEPS, MICRO_BATCHES, BATCH))
    x += 0.5 * y[..., None, None, None]
    model.double()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for part in range(MICRO_BATCHES):
            loss = F.cross_entropy(model(x[step, part].double()), y[step, part]) / MICRO_BATCHES
            loss.backward()
            total += loss.item()
        optimizer.step()
        for module in model.modules():
            if isinstance(module, BatchNorm):
                module.end_step()
        losses.append(round(total, 9))
    tensors.update(state(model, "final"))
    directory = Path(__file__).parent
    save_safetensors(directory / "resnet.safetensors", {**tensors, "data.x": x, "data.y": y})
    written = {
        "made_with": f"torch {torch.__version__}",
        "model": {"widths": WIDTHS, "classes": CLASSES, "size": SIZE},
        "batch": BATCH,
        "lr": LR,
        "momentum": MOMENTUM,
        "losses": losses,
    }
    (directory / "resnet.json").write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
