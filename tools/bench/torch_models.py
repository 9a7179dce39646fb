"""The project's demo models written in PyTorch, with the parameter names our own models use.

Not a program: tests/reference/make_reference.py, tools/bench/torch_peer.py and gpu/torch_gpu_peer.py import it.
Shapes: B batch, T time (context), C channels, H heads, D = C/H, V vocabulary.
"""

from typing import Tuple, Type

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


class RotaryAttention(nn.Module):
    """Causal attention of grouped queries with rotary positions: KH heads of keys and values serve H of queries."""

    def __init__(self, channels: int, heads: int, key_heads: int, context: int) -> None:
        super().__init__()
        self.size = channels // heads
        self.q_proj = nn.Linear(channels, channels, bias=False)
        self.k_proj = nn.Linear(channels, key_heads * self.size, bias=False)
        self.v_proj = nn.Linear(channels, key_heads * self.size, bias=False)
        self.o_proj = nn.Linear(channels, channels, bias=False)
        frequencies = 10000.0 ** (-torch.arange(0, self.size, 2) / self.size)
        angles = torch.outer(torch.arange(context), frequencies).repeat(1, 2)  # (T, D)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self._by_head(project(x)) for project in (self.q_proj, self.k_proj, self.v_proj))
        mixed = F.scaled_dot_product_attention(self._rotated(q), self._rotated(k), v, is_causal=True, enable_gqa=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(x.shape))

    def _by_head(self, x: Tensor) -> Tensor:
        """(B, T, n D) -> (B, n, T, D)"""
        return x.view(x.shape[0], x.shape[1], -1, self.size).transpose(1, 2)

    def _rotated(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        time = x.shape[2]
        return x * self.cos[:time] + torch.cat((-second, first), dim=-1) * self.sin[:time]


class LlamaBlock(nn.Module):
    """Root mean square norms before attention and SwiGLU."""

    def __init__(self, channels: int, heads: int, key_heads: int, hidden: int, context: int) -> None:
        super().__init__()
        self.input_norm = nn.RMSNorm(channels, eps=1e-5)
        self.attention = RotaryAttention(channels, heads, key_heads, context)
        self.mlp_norm = nn.RMSNorm(channels, eps=1e-5)
        self.gate = nn.Linear(channels, hidden, bias=False)
        self.up = nn.Linear(channels, hidden, bias=False)
        self.down = nn.Linear(hidden, channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.input_norm(x))
        normed = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    """With a head of its own; the loss is the mean cross-entropy."""

    def __init__(self, layers: int, heads: int, key_heads: int, channels: int, hidden: int, context: int,
                 vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, channels)
        self.blocks = nn.Sequential(*[LlamaBlock(channels, heads, key_heads, hidden, context) for _ in range(layers)])
        self.norm = nn.RMSNorm(channels, eps=1e-5)
        self.head = nn.Linear(channels, vocabulary, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """tokens, targets: int64 (B, T)"""
        logits = self.head(self.norm(self.blocks(self.embedding(tokens))))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class LstmLanguage(nn.Module):
    """The loss is the mean cross-entropy."""

    def __init__(self, layers: int, channels: int, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, channels)
        self.lstm = nn.LSTM(channels, hidden, layers, batch_first=True)
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """tokens, targets: int64 (B, T)"""
        logits = self.output(self.lstm(self.embedding(tokens))[0])
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class BertLayer(nn.Module):
    """A norm after each residual addition; attention that sees everything, with the exact GELU."""

    def __init__(self, channels: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, channels)
        self.key = nn.Linear(channels, channels)
        self.value = nn.Linear(channels, channels)
        self.projection = nn.Linear(channels, channels)
        self.norm1 = nn.LayerNorm(channels, eps=1e-12)
        self.expand = nn.Linear(channels, hidden)
        self.contract = nn.Linear(hidden, channels)
        self.norm2 = nn.LayerNorm(channels, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self._by_head(project(x)) for project in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + self.projection(mixed.transpose(1, 2).reshape(x.shape)))
        return self.norm2(x + self.contract(F.gelu(self.expand(x))))

    def _by_head(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, H, T, D)"""
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)


class Bert(nn.Module):
    """The head is tied to the token embedding; the loss is the mean cross-entropy of the hidden tokens."""

    def __init__(self, layers: int, heads: int, channels: int, context: int, vocabulary: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, channels)
        self.position_embedding = nn.Embedding(context, channels)
        self.norm = nn.LayerNorm(channels, eps=1e-12)
        self.layers = nn.Sequential(*[BertLayer(channels, heads, 4 * channels) for _ in range(layers)])
        self.transform = nn.Linear(channels, channels)
        self.transform_norm = nn.LayerNorm(channels, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        """tokens, labels: int64 (B, T), label -100 where nothing is hidden"""
        x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
        x = self.layers(self.norm(x))
        x = self.transform_norm(F.gelu(self.transform(x)))
        logits = F.linear(x, self.token_embedding.weight, self.bias)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class VitBlock(nn.Module):
    """Pre-LN block whose attention sees everything, with the exact GELU."""

    def __init__(self, channels: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(channels, eps=1e-12)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.projection = nn.Linear(channels, channels)
        self.norm2 = nn.LayerNorm(channels, eps=1e-12)
        self.expand = nn.Linear(channels, hidden)
        self.contract = nn.Linear(hidden, channels)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, channels = x.shape
        split = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, channels // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, time, channels))
        return x + self.contract(F.gelu(self.expand(self.norm2(x))))


class Vit(nn.Module):
    """A class token before the patches; the loss is the mean cross-entropy."""

    def __init__(self, layers: int, heads: int, channels: int, hidden: int, image: Tuple[int, int], patch: int,
                 classes: int) -> None:
        super().__init__()
        image_channels, size = image
        self.patches = nn.Conv2d(image_channels, channels, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, channels) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, 1 + (size // patch) ** 2, channels) * 0.02)
        self.blocks = nn.Sequential(*[VitBlock(channels, heads, hidden) for _ in range(layers)])
        self.norm = nn.LayerNorm(channels, eps=1e-12)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        """images (B, image channels, size, size), classes int64 (B)"""
        patches = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(images), -1, -1), patches), dim=1) + self.positions
        return F.cross_entropy(self.classifier(self.norm(self.blocks(x))[:, 0]), classes)


class ConvNorm(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class ResNetBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = ConvNorm(inputs, outputs, 3, stride)
        self.second = ConvNorm(outputs, outputs, 3, 1)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else ConvNorm(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet18(nn.Module):
    """For small images: a 3x3 stem and no pooling before the blocks; the loss is the mean cross-entropy."""

    def __init__(self, image_channels: int, classes: int) -> None:
        super().__init__()
        widths = [64, 128, 256, 512]
        self.stem = ConvNorm(image_channels, widths[0], 3, 1)
        blocks = []
        for previous, width in zip([widths[0], *widths], widths):
            blocks += [ResNetBlock(previous, width, 1 if width == previous else 2), ResNetBlock(width, width, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.output = nn.Linear(widths[-1], classes)

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        x = self.blocks(F.relu(self.stem(images)))
        return F.cross_entropy(self.output(x.mean((2, 3))), classes)
