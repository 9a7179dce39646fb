"""The project's demo models written in PyTorch, with the parameter names our own models use.

Not a program: tests/reference/make_reference.py, tools/bench/torch_peer.py and gpu/torch_gpu_peer.py import it.
Shapes: B batch, T time (context), C channels, H heads, D = C/H, V vocabulary.
"""

from typing import Type

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class LinearStack(nn.Module):
    """`depth` x Linear(width, width) without activations; the loss is the mean squared error."""

    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(self.layers(x), y)


class Classifier(nn.Module):
    """Linear, ReLU, Linear; the loss is the mean cross-entropy."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(inputs, hidden)
        self.output = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.output(F.relu(self.hidden(x))), y)


class Attention(nn.Module):
    """Causal self-attention. qkv is [q | k | v] along the output dim, heads contiguous inside each."""

    def __init__(self, channels: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(channels, 3 * channels)
        self.projection = nn.Linear(channels, channels)
        hidden_from = torch.full((context, context), float("-inf")).triu(1)
        self.register_buffer("mask", hidden_from, persistent=False)  # (T, T), added to the scores

    def forward(self, x: Tensor) -> Tensor:
        batch, time, channels = x.shape
        q, k, v = (self._by_head(part) for part in self.qkv(x).split(channels, dim=2))
        # One call scales, masks and multiplies: the fastest way this version of PyTorch has on a CPU.
        scores = torch.baddbmm(self.mask[:time, :time], q, k.transpose(1, 2), alpha=q.shape[2] ** -0.5)
        mixed = torch.bmm(scores.softmax(dim=2), v).view(batch, self.heads, time, -1)
        return self.projection(mixed.transpose(1, 2).reshape(batch, time, channels))

    def _by_head(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B*H, T, D)"""
        batch, time, channels = x.shape
        split = x.view(batch, time, self.heads, channels // self.heads)
        return split.transpose(1, 2).reshape(batch * self.heads, time, -1)


class FusedAttention(nn.Module):
    """The same function without a T x T matrix, for GPUs; needs PyTorch 2."""

    def __init__(self, channels: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(channels, 3 * channels)
        self.projection = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, channels = x.shape
        split = self.qkv(x).view(batch, time, 3, self.heads, channels // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)  # each (B, H, T, D)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.projection(mixed.transpose(1, 2).reshape(batch, time, channels))


class Mlp(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.expand = nn.Linear(channels, 4 * channels)
        self.contract = nn.Linear(4 * channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(F.gelu(self.expand(x), approximate="tanh"))


class Block(nn.Module):
    """Pre-LN transformer block."""

    def __init__(self, channels: int, heads: int, context: int, attention: Type[nn.Module]) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels, eps=1e-5)
        self.attention = attention(channels, heads, context)
        self.norm2 = nn.LayerNorm(channels, eps=1e-5)
        self.mlp = Mlp(channels)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """GPT-2 without dropout; the head is tied to the token embedding; the loss is the mean cross-entropy, in f32."""

    def __init__(self, layers: int, heads: int, channels: int, context: int, vocabulary: int,
                 attention: Type[nn.Module] = Attention) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, channels)
        self.position_embedding = nn.Embedding(context, channels)
        self.blocks = nn.ModuleList([Block(channels, heads, context, attention) for _ in range(layers)])
        self.final_norm = nn.LayerNorm(channels, eps=1e-5)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """tokens, targets: int64 (B, T)"""
        x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.final_norm(x), self.token_embedding.weight)  # (B, T, V)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
