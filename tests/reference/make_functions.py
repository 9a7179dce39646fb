#!/usr/bin/python3
"""Makes functions.json with PyTorch: results and gradients of the functions of nn, in double precision.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tests/reference/make_functions.py

Each case is y = f(a, b) for the tensors a (2, 3, 4), with elements in (-2, 2), and b, of the case's shape. The loss is
the sum of y times weights of its shape. tests/zero/function_reference_test.cc has the same functions by these names. The file
holds {"made_with", "a": [...], "cases": [{"name", "b_shape", "b", "y_shape", "y", "weights", "da", "db"}]}.
"""

import json
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import torch
import torch.nn.functional as F
from composed_cases import COMPOSED_CASES
from matrix_cases import MATRIX_CASES
from scatter_cases import SCATTER_CASES
from shape_cases import SHAPE_CASES
from torch import Tensor

torch.manual_seed(20)


def class_weights() -> Tensor:
    return torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64)


def class_loss(a: Tensor, reduction: str) -> Tensor:
    targets = a.flip(-1).argmax(1)
    return F.cross_entropy(
        a, targets, weight=class_weights(), ignore_index=2, label_smoothing=0.1, reduction=reduction
    )


def text_loss(logits: Tensor, reduction: str, blank: int) -> Tensor:
    log_probabilities = logits.log_softmax(-1).transpose(0, 1)
    targets = torch.tensor([[1, 2], [2, 2], [1, 2]])
    input_lengths, target_lengths = torch.tensor([5, 4, 3]), torch.tensor([2, 2, 0])
    return F.ctc_loss(log_probabilities, targets, input_lengths, target_lengths, blank=blank, reduction=reduction)


def image(a: Tensor) -> Tensor:
    return a.reshape(1, 2, 3, 4)


# Name: shape of b, function.
Function = Callable[[Tensor, Tensor], Tensor]
FULL = (2, 3, 4)
CASES: Dict[str, Tuple[Tuple[int, ...], Function]] = {
    "add": ((4,), lambda a, b: a + b),
    "subtract": ((3, 1), lambda a, b: a - b),
    "multiply": ((2, 1, 4), lambda a, b: a * b),
    "divide": (FULL, lambda a, b: a / (b * b + 0.5)),
    "numbers": ((4,), lambda a, b: 2.0 - (a + 1.0) / 3.0 * b - 0.5 / (b * b + 1.0)),
    "maximum": ((4,), torch.maximum),
    "minimum": ((4,), torch.minimum),
    "clamp": ((1,), lambda a, b: a.clamp(-0.5, 1.0) * b),
    "abs": ((1,), lambda a, b: a.abs() * b),
    "sqrt": ((1,), lambda a, b: (a * a + 0.5).sqrt() * b),
    "rsqrt": ((1,), lambda a, b: (a * a + 0.5).rsqrt() * b),
    "exp": ((1,), lambda a, b: a.exp() * b),
    "log": ((1,), lambda a, b: (a * a + 0.5).log() * b),
    "sin": ((1,), lambda a, b: a.sin() * b),
    "cos": ((1,), lambda a, b: a.cos() * b),
    "tanh": ((1,), lambda a, b: a.tanh() * b),
    "sigmoid": ((1,), lambda a, b: a.sigmoid() * b),
    "softplus": ((1,), lambda a, b: F.softplus(a) * b),
    "erf": ((1,), lambda a, b: a.erf() * b),
    "relu": ((1,), lambda a, b: a.relu() * b),
    "leaky_relu": ((1,), lambda a, b: F.leaky_relu(a, 0.2) * b),
    "elu": ((1,), lambda a, b: F.elu(a, 0.7) * b),
    "silu": ((1,), lambda a, b: F.silu(a) * b),
    "gelu": ((1,), lambda a, b: F.gelu(a, approximate="tanh") * b),
    "gelu_erf": ((1,), lambda a, b: F.gelu(a) * b),
    "sum": ((3,), lambda a, b: a.sum((0, 2)) * b),
    "mean": ((2, 1, 4), lambda a, b: a.mean(1, keepdim=True) * b),
    "variance": ((3,), lambda a, b: a.var((0, -1)) * b),
    "norm": ((2, 3), lambda a, b: torch.linalg.vector_norm(a, dim=-1) * b),
    "reshape": ((6, 4), lambda a, b: a.reshape(6, 4) * b),
    "permute": ((4, 2, 3), lambda a, b: a.permute(2, 0, 1) * b),
    "slice": ((2, 3, 2), lambda a, b: a[:, :, 1:4:2] * b),
    "select": ((2, 4), lambda a, b: a.select(1, -1) * b),
    "concat": ((2, 2, 4), lambda a, b: torch.cat([a, b], 1) ** 2),
    "stack": (FULL, lambda a, b: torch.stack([a, b], 1) ** 2),
    "chunk": ((2, 3, 2), lambda a, b: a.chunk(2, -1)[0] * a.chunk(2, -1)[1] * b),
    "expand": ((1, 3, 1), lambda a, b: b.expand(2, 3, 4) * a),
    "repeat": ((2, 6, 4), lambda a, b: a.repeat(1, 2, 1) * b),
    "pad": ((2, 6, 4), lambda a, b: F.pad(a, (0, 0, 1, 2), value=0.5) * b),
    "roll": (FULL, lambda a, b: a.roll(2, -1) * b),
    "matmul": ((4, 5), torch.matmul),
    "matmul_batch": ((2, 4, 5), torch.matmul),
    "matmul_vector": ((4,), torch.matmul),
    "einsum_attention": ((2, 5, 4), lambda a, b: torch.einsum("bqd,bkd->bqk", a, b)),
    "einsum_outer": ((5, 4), lambda a, b: torch.einsum("bqd,kd->kbq", a, b)),
    "softmax": (FULL, lambda a, b: a.softmax(-1) * b),
    "softmax_dim": (FULL, lambda a, b: a.softmax(1) * b),
    "log_softmax": (FULL, lambda a, b: a.log_softmax(-1) * b),
    "group_norm": ((3,), lambda a, b: F.group_norm(a, 3, weight=b)),
    "conv1d": ((5, 3, 3), lambda a, b: F.conv1d(a, b, padding=1)),
    "conv1d_strided": ((5, 3, 2), lambda a, b: F.conv1d(a, b, stride=2, dilation=2, padding=1)),
    "conv2d": ((3, 2, 2, 3), lambda a, b: F.conv2d(a.reshape(1, 2, 3, 4), b, stride=(1, 2), padding=(1, 0))),
    "conv2d_dilated": ((3, 2, 2, 2), lambda a, b: F.conv2d(a.reshape(1, 2, 3, 4), b, padding=2, dilation=(2, 3))),
    "conv2d_groups": ((6, 1, 2, 2), lambda a, b: F.conv2d(a.reshape(2, 3, 2, 2), b, padding=1, groups=3)),
    "conv2d_bias": ((6,), lambda a, b: F.conv2d(a.reshape(1, 2, 3, 4), a.reshape(6, 2, 2, 1), b)),
    "conv_transpose2d": (
        (2, 3, 2, 3),
        lambda a, b: F.conv_transpose2d(
            a.reshape(1, 2, 3, 4), b, stride=(2, 3), padding=(0, 1), output_padding=(1, 2), dilation=(2, 1)
        ),
    ),
    "conv_transpose2d_groups": ((3, 2, 2, 2), lambda a, b: F.conv_transpose2d(a.reshape(2, 3, 2, 2), b, groups=3)),
    "max_pool1d": ((2, 3, 2), lambda a, b: F.max_pool1d(a, 3, 2, 1) * b),
    "max_pool2d": ((1,), lambda a, b: F.max_pool2d(a.reshape(1, 2, 3, 4), (2, 3), 1, 1) * b),
    "avg_pool1d": ((2, 3, 2), lambda a, b: F.avg_pool1d(a, 3, 2, 1) * b),
    "avg_pool2d": ((1,), lambda a, b: F.avg_pool2d(a.reshape(1, 2, 3, 4), (3, 2), (1, 2), (1, 0)) * b),
    "avg_pool2d_inside": (
        (1,),
        lambda a, b: F.avg_pool2d(a.reshape(1, 2, 3, 4), 2, 2, 1, count_include_pad=False) * b,
    ),
    "adaptive_avg_pool2d": ((1,), lambda a, b: F.adaptive_avg_pool2d(a.reshape(1, 2, 3, 4), (2, 3)) * b),
    "adaptive_avg_pool2d_one": ((2, 1, 1), lambda a, b: F.adaptive_avg_pool2d(a.reshape(1, 2, 3, 4), 1) * b),
    "interpolate_nearest": ((1,), lambda a, b: F.interpolate(a.reshape(1, 2, 3, 4), (5, 7)) * b),
    "interpolate_bilinear": (
        (1,),
        lambda a, b: F.interpolate(a.reshape(1, 2, 3, 4), (2, 9), mode="bilinear", align_corners=False) * b,
    ),
    "interpolate_corners": (
        (1,),
        lambda a, b: F.interpolate(a.reshape(1, 2, 3, 4), (5, 7), mode="bilinear", align_corners=True) * b,
    ),
    "batch_norm": ((3,), lambda a, b: F.batch_norm(a, None, None, weight=b, training=True)),
    "batch_norm_images": (
        (2,),
        lambda a, b: F.batch_norm(a.reshape(3, 2, 2, 2), None, None, weight=b, bias=b * b, training=True, eps=0.1),
    ),
    "mse_loss": (FULL, F.mse_loss),
    "l1_loss": (FULL, F.l1_loss),
    "smooth_l1_loss": (FULL, lambda a, b: F.smooth_l1_loss(a, b, beta=0.7)),
    "huber_loss": (FULL, lambda a, b: F.huber_loss(a, b, delta=0.7)),
    "bce_with_logits": (FULL, lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid())),
    "soft_cross_entropy": (FULL, lambda a, b: F.cross_entropy(a.reshape(6, 4), b.softmax(-1).reshape(6, 4))),
    "kl_div": (
        FULL,
        lambda a, b: F.kl_div(a.log_softmax(-1).reshape(6, 4), b.softmax(-1).reshape(6, 4), reduction="batchmean"),
    ),
    "where": (FULL, lambda a, b: torch.where(a > b, a, 2.0 * b)),
    "masked_fill": ((4,), lambda a, b: a.masked_fill(b > 0, 0.25) * b),
    "comparisons": (FULL, lambda a, b: (a <= b).double() * a + (a != b).double() * b),
    "logical": (FULL, lambda a, b: torch.where(((a > 0) & (b < 1)) | ~(a > -1), a * b, b)),
    "pow": (FULL, lambda a, b: (a * a + 0.5) ** b),
    "pow_number": ((1,), lambda a, b: (a * a + 0.5) ** 1.7 * b + a**3),
    "gather": (FULL, lambda a, b: a.gather(1, b.argmin(1, keepdim=True)) * b),
    "index_select": (FULL, lambda a, b: a.index_select(1, torch.tensor([2, 1, 0])) * b),
    "index_select_rows": ((4, 3, 4), lambda a, b: a.index_select(0, torch.tensor([1, 1, 0, 1])) * b),
    "one_hot": ((4,), lambda a, b: F.one_hot(a.argmax(-1), 4) * b + a),
    "tril": ((1,), lambda a, b: a.tril(-1) * b),
    "triu": ((1,), lambda a, b: a.triu(1) * b),
    "flip": (FULL, lambda a, b: a.flip(1) * b),
    "max": ((3,), lambda a, b: a.amax((0, 2)) * b),
    "min": ((2, 1, 4), lambda a, b: a.amin(1, keepdim=True) * b),
    "max_all": ((1,), lambda a, b: a.max() * b),
    "top_k": ((2, 3, 2), lambda a, b: a.topk(2, -1).values * b),
    "sort": (FULL, lambda a, b: a.sort(1).values * b),
    "any_all": (FULL, lambda a, b: torch.where((a > 1.5).any(2, keepdim=True) | (a > -1).all(1, keepdim=True), a, b)),
    "cumsum": (FULL, lambda a, b: a.cumsum(1) * b),
    "logsumexp": ((3,), lambda a, b: a.logsumexp((0, 2)) * b),
    "vector_norm": ((2, 4), lambda a, b: torch.linalg.vector_norm(a, 3, 1) * b),
    "largest_norm": ((2, 4), lambda a, b: torch.linalg.vector_norm(a, float("inf"), 1) * b),
    "stop_gradient": (FULL, lambda a, b: a.detach() * b + a),
    "cross_entropy_options": ((1,), lambda a, b: class_loss(a, "mean") * b),
    "cross_entropy_sum": ((1,), lambda a, b: class_loss(a, "sum") * b),
    "cross_entropy_of_rows": ((2, 4), lambda a, b: class_loss(a, "none") * b),
    "cross_entropy_smooth": (
        FULL,
        lambda a, b: F.cross_entropy(a.reshape(6, 4), b.argmax(-1).reshape(6), label_smoothing=0.2) + b.sum(),
    ),
    "nll_loss": (
        FULL,
        lambda a, b: F.nll_loss(a.log_softmax(-1).reshape(6, 4), b.argmax(-1).reshape(6), ignore_index=1) + b.sum(),
    ),
    "soft_cross_entropy_options": (
        FULL,
        lambda a, b: F.cross_entropy(a, b.softmax(1), weight=class_weights(), label_smoothing=0.1, reduction="none"),
    ),
    "mse_loss_of_elements": (FULL, lambda a, b: F.mse_loss(a, b, reduction="none")),
    "l1_loss_sum": (FULL, lambda a, b: F.l1_loss(a, b, reduction="sum")),
    "cosine_similarity": (FULL, lambda a, b: F.cosine_similarity(a, b, 1)),
    "cosine_embedding_loss": (
        FULL,
        lambda a, b: F.cosine_embedding_loss(
            a.reshape(6, 4), b.reshape(6, 4), torch.tensor([-1, 1, -1] * 2), 0.1, reduction="none"
        ).reshape(2, 3),
    ),
    "expm1": ((1,), lambda a, b: a.expm1() * b),
    "log1p": ((1,), lambda a, b: (a * a).log1p() * b),
    "floor": ((1,), lambda a, b: a.floor() * b + a),
    "ceil": ((1,), lambda a, b: a.ceil() * b + a),
    "round": ((1,), lambda a, b: (2.0 * a).round() * b + a),
    "relu6": ((1,), lambda a, b: F.relu6(4.0 * a) * b),
    "hardsigmoid": ((1,), lambda a, b: F.hardsigmoid(2.0 * a) * b),
    "hardswish": ((1,), lambda a, b: F.hardswish(2.0 * a) * b),
    "mish": ((1,), lambda a, b: F.mish(a) * b),
    "selu": ((1,), lambda a, b: F.selu(a) * b),
    "log_sigmoid": ((1,), lambda a, b: F.logsigmoid(a) * b),
    "glu": ((2, 3, 2), lambda a, b: F.glu(a) * b),
    "prelu": ((3,), F.prelu),
    "prelu_of_all": ((1,), F.prelu),
    "scatter_add": (FULL, lambda a, b: b.scatter_add(1, (b[:, :2, :3] > 0).long(), a[:, :2, :3])),
    "scatter_add_rows": ((4, 3, 4), lambda a, b: b.scatter_add(0, 3 * (a > 0).long(), a)),
    "index_add": (FULL, lambda a, b: b.index_add(1, torch.tensor([2, 0, 2]), a)),
    "index_add_rows": ((5, 3, 4), lambda a, b: b.index_add(0, torch.tensor([4, 1]), a) ** 2),
    "conv_transpose1d": (
        (3, 5, 3),
        lambda a, b: F.conv_transpose1d(a, b, stride=2, padding=1, output_padding=1),
    ),
    "conv_transpose1d_bias": (
        (6,),
        lambda a, b: F.conv_transpose1d(a.reshape(1, 6, 4), a.reshape(6, 2, 2), b, groups=3),
    ),
    "pixel_shuffle": ((4, 6), lambda a, b: F.pixel_shuffle(a.reshape(1, 4, 2, 3), 2) * b),
    "pixel_unshuffle": ((4, 2, 3), lambda a, b: F.pixel_unshuffle(a.reshape(1, 1, 4, 6), 2) * b),
    "stddev": ((3,), lambda a, b: a.std((0, 2)) * b),
    "normalize": ((2, 3, 1), lambda a, b: F.normalize(a, dim=-1) * b),
    "unbind": ((2, 4), lambda a, b: a.unbind(1)[0] * b + a.unbind(1)[2]),
    "logaddexp": (FULL, lambda a, b: torch.logaddexp(3 * a, b)),
    "eye": ((4, 4), lambda a, b: a @ (torch.eye(4, dtype=torch.float64) * b)),
    "linspace": ((3, 1), lambda a, b: a * b * torch.linspace(-1, 2, 4, dtype=torch.float64)),
    "triplet_margin_loss": (
        FULL,
        lambda a, b: F.triplet_margin_loss(a, b, a.flip(1) * b, margin=0.5, reduction="none"),
    ),
    "atan": ((1,), lambda a, b: a.atan() * b),
    "atan2": (FULL, torch.atan2),
    "atan2_column": ((3, 1), lambda a, b: torch.atan2(b, 1.0 - a)),
    "tan": ((1,), lambda a, b: (a * 0.5).tan() * b),
    "asin": ((1,), lambda a, b: (a * 0.45).asin() * b),
    "acos": ((1,), lambda a, b: (a * 0.45).acos() * b),
    "sinh": ((1,), lambda a, b: a.sinh() * b),
    "cosh": ((1,), lambda a, b: a.cosh() * b),
    "asinh": ((1,), lambda a, b: a.asinh() * b),
    "acosh": ((1,), lambda a, b: (a * a + 1.5).acosh() * b),
    "atanh": ((1,), lambda a, b: (a * 0.45).atanh() * b),
    "exp2": ((1,), lambda a, b: a.exp2() * b),
    "log2": ((1,), lambda a, b: (a * a + 0.5).log2() * b),
    "log10": ((1,), lambda a, b: (a * a + 0.5).log10() * b),
    "trunc": ((1,), lambda a, b: (3.0 * a).trunc() * b + a),
    "lerp": (FULL, lambda a, b: torch.lerp(a, b, 0.3) + torch.lerp(a, b, b)),
    "softsign": ((1,), lambda a, b: F.softsign(a) * b),
    "hardtanh": ((1,), lambda a, b: F.hardtanh(a) * b),
    "celu": ((1,), lambda a, b: F.celu(a, 0.7) * b),
    "prod": ((2, 4), lambda a, b: a.prod(1) * b),
    "prod_with_zeros": ((1, 3, 1), lambda a, b: a.relu().prod(2, keepdim=True).prod(0, keepdim=True) * b),
    "cumprod": (FULL, lambda a, b: a.cumprod(-1) * b),
    "cumprod_with_zeros": (FULL, lambda a, b: (a + 0.5).relu().cumprod(1) * b),
    "sort_descending": (FULL, lambda a, b: a.sort(1, descending=True).values * b),
    "argsort": (FULL, lambda a, b: b.gather(-1, a.argsort(-1)) + a),
    "diagonal": ((2, 3), lambda a, b: a.diagonal(0, 1, 2) * b),
    "diagonal_below": ((2, 2), lambda a, b: a.diagonal(-1, 1, 2) * b),
    "diagonal_above": ((2, 2), lambda a, b: a.diagonal(2, 1, 2) * b),
    "diag_embed": ((4, 4), lambda a, b: a.diag_embed() * b),
    "diag_embed_below": ((6, 6), lambda a, b: a.diag_embed(-2) * b),
    "unfold": ((12, 8), lambda a, b: F.unfold(image(a), (2, 3), padding=1, stride=(1, 2)) * b),
    "unfold_dilated": ((8, 3), lambda a, b: F.unfold(image(a), 2, dilation=(2, 1)) * b),
    "fold": (
        (3, 4),
        lambda a, b: F.fold(a.reshape(2, 4, 3), (3, 4), 2, dilation=(3, 1), padding=(1, 0), stride=(2, 1)) * b,
    ),
    "grid_sample": ((1, 3, 5, 2), lambda a, b: F.grid_sample(image(a), b * 0.7, align_corners=False)),
    "grid_sample_border": (
        (1, 3, 5, 2),
        lambda a, b: F.grid_sample(image(a), b, padding_mode="border", align_corners=True),
    ),
    "grid_sample_nearest": (
        (1, 3, 5, 2),
        lambda a, b: F.grid_sample(image(a), b * 0.4, mode="nearest", align_corners=False) + b.sum(),
    ),
    "affine_grid": (
        (2, 2, 3),
        lambda a, b: F.grid_sample(
            a.reshape(2, 1, 3, 4), F.affine_grid(b, [2, 1, 3, 2], align_corners=False), align_corners=False
        ),
    ),
    "affine_grid_aligned": (
        (2, 2, 3),
        lambda a, b: F.affine_grid(b, [2, 1, 2, 3], align_corners=True) * a.sum(),
    ),
    "conv3d": (
        (3, 2, 2, 2, 2),
        lambda a, b: F.conv3d(a.reshape(1, 2, 3, 2, 2), b, stride=(2, 1, 1), padding=(1, 0, 1), dilation=(1, 1, 2)),
    ),
    "conv3d_groups": (
        (4,),
        lambda a, b: F.conv3d(a.reshape(1, 2, 3, 2, 2), a.reshape(4, 1, 3, 2, 1), b, padding=(1, 0, 0), groups=2),
    ),
    "max_pool3d": (
        (4, 1, 2),
        lambda a, b: F.max_pool3d(a.reshape(2, 1, 3, 2, 2), (2, 2, 1), stride=1, padding=(1, 0, 0)) * b,
    ),
    "avg_pool3d": (
        (4, 3, 1),
        lambda a, b: F.avg_pool3d(a.reshape(2, 1, 3, 2, 2), 2, stride=1, padding=(1, 1, 0)) * b,
    ),
    "margin_ranking_loss": (
        FULL,
        lambda a, b: F.margin_ranking_loss(a, b, a.flip(1).sign().detach(), margin=0.5, reduction="none"),
    ),
    "hinge_embedding_loss": (
        FULL,
        lambda a, b: F.hinge_embedding_loss(b, a.flip(1).sign().detach(), margin=0.5, reduction="none") + a,
    ),
    "gaussian_nll_loss": (
        FULL,
        lambda a, b: F.gaussian_nll_loss(a, b, b.flip(1) ** 2 + 0.5, reduction="none"),
    ),
    "poisson_nll_loss": (FULL, lambda a, b: F.poisson_nll_loss(a, b, reduction="none")),
    "conv_transpose3d": (
        (2, 3, 2, 2, 1),
        lambda a, b: F.conv_transpose3d(
            a.reshape(1, 2, 3, 2, 2), b, stride=(2, 1, 1), padding=(1, 0, 0), output_padding=(1, 0, 0)
        ),
    ),
    "conv_transpose3d_groups": (
        (2,),
        lambda a, b: F.conv_transpose3d(
            a.reshape(1, 2, 3, 2, 2), a.reshape(2, 1, 3, 2, 2), b, dilation=(2, 1, 1), groups=2
        ),
    ),
    "ctc_loss": ((3, 5, 4), lambda a, b: text_loss(b, "none", 0) + a.sum()),
    "ctc_loss_mean": ((3, 5, 4), lambda a, b: text_loss(b, "mean", 3) + a.sum()),
    **COMPOSED_CASES,
    **SCATTER_CASES,
    **MATRIX_CASES,
    **SHAPE_CASES,
    "max_pool2d_ceil": ((1,), lambda a, b: F.max_pool2d(image(a), (2, 3), 2, (0, 1), ceil_mode=True) * b),
    "avg_pool2d_ceil": ((1,), lambda a, b: F.avg_pool2d(image(a), (2, 3), 2, (0, 1), ceil_mode=True) * b),
    "avg_pool2d_ceil_inside": (
        (1,),
        lambda a, b: F.avg_pool2d(image(a), (2, 3), 2, (0, 1), ceil_mode=True, count_include_pad=False) * b,
    ),
    "layer_norm_of_two_dims": ((3, 4), lambda a, b: F.layer_norm(a, (3, 4), b, b * b)),
    "rms_norm_of_two_dims": ((3, 4), lambda a, b: F.rms_norm(a, (3, 4), b, eps=1e-6)),
    "meshgrid": ((4,), lambda a, b: torch.stack(torch.meshgrid(a[0, 0], b, a[1, :, 0], indexing="ij"))),
}


def numbers(tensor: Tensor) -> List[float]:
    return [round(x, 9) for x in tensor.detach().flatten().tolist()]


def make_case(a: Tensor, name: str) -> Dict[str, object]:
    b_shape, function = CASES[name]
    b = (torch.rand(b_shape, dtype=torch.float64) * 4 - 2).float().double().requires_grad_()
    a = a.clone().requires_grad_()
    y = function(a, b)
    weights = (torch.rand(y.shape, dtype=torch.float64) * 2 - 1).float().double()
    (y * weights).sum().backward()
    return {
        "name": name,
        "b_shape": list(b_shape),
        "b": numbers(b),
        "y_shape": list(y.shape),
        "y": numbers(y),
        "weights": numbers(weights),
        "da": numbers(a.grad),
        "db": numbers(b.grad),
    }


def main() -> None:
    a = (torch.rand(FULL, dtype=torch.float64) * 4 - 2).float().double()
    path = Path(__file__).with_name("functions.json")
    cases = [make_case(a, name) for name in CASES]
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    path.write_text(
        f'{{"made_with": "torch {torch.__version__}",\n "a": {json.dumps(numbers(a))},\n "cases": [\n{lines}\n]}}\n'
    )


if __name__ == "__main__":
    main()
