"""Cases of make_functions.py: sizes that are changed, broadcast or different."""

from typing import Callable, Dict, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


def capped_attention(a: Tensor, sinks: Tensor) -> Tensor:
    """Causal, with soft-capped scores (Gemma 2) and sinks (gpt-oss)."""
    q = a.reshape(2, 3, 2, 2).transpose(1, 2)
    scores = 0.8 * torch.tanh(q @ (q * 0.5).transpose(2, 3) / 2**0.5 / 0.8)
    scores = scores.masked_fill(torch.ones(3, 3).triu(1).bool(), -torch.inf)
    with_sinks = torch.cat([scores, sinks.reshape(1, 2, 1, 1).expand(2, 2, 3, 1)], dim=3)
    return torch.softmax(with_sinks, dim=3)[..., :-1] @ q


SHAPE_CASES: Dict[str, Tuple[Tuple[int, ...], Callable[[Tensor, Tensor], Tensor]]] = {
    "interpolate1d": ((1,), lambda a, b: F.interpolate(a, 7) * b),
    "interpolate1d_linear": ((1,), lambda a, b: F.interpolate(a, 6, mode="linear", align_corners=False) * b),
    "interpolate1d_corners": ((1,), lambda a, b: F.interpolate(a, 3, mode="linear", align_corners=True) * b),
    "interpolate3d": ((1,), lambda a, b: F.interpolate(a.reshape(1, 2, 3, 2, 2), (5, 3, 4)) * b),
    "interpolate3d_linear": (
        (1,),
        lambda a, b: F.interpolate(
            a.reshape(1, 2, 3, 2, 2), (2, 5, 3), mode="trilinear", align_corners=False
        )
        * b,
    ),
    "interpolate3d_corners": (
        (1,),
        lambda a, b: F.interpolate(
            a.reshape(2, 1, 3, 2, 2), (4, 3, 5), mode="trilinear", align_corners=True
        )
        * b,
    ),
    "einsum_broadcast": (
        (1, 4, 5),
        lambda a, b: torch.einsum("bij,bjk->bik", a, b) + torch.einsum("bij,bik->jk", a, b[:, :1]).sum(),
    ),
    "attention_narrow_values": (
        (2, 3, 2),
        lambda a, b: F.scaled_dot_product_attention(
            a.reshape(2, 3, 2, 2).transpose(1, 2),
            a.reshape(2, 3, 2, 2).transpose(1, 2) * 0.5,
            b.reshape(2, 3, 2, 1).transpose(1, 2),
        ),
    ),
    "attention_wide_values": (
        (2, 3, 6),
        lambda a, b: F.scaled_dot_product_attention(
            a.reshape(2, 3, 2, 2).transpose(1, 2),
            a.reshape(2, 3, 2, 2).transpose(1, 2) * 0.5,
            b.reshape(2, 3, 2, 3).transpose(1, 2),
            is_causal=True,
        ),
    ),
    "attention_soft_cap_and_sinks": ((2,), capped_attention),
}
