"""Cases of make_functions.py for functions that write at positions, search, and run along a dim."""

from typing import Callable, Dict, Tuple

import torch
from torch import Tensor

Function = Callable[[Tensor, Tensor], Tensor]
FULL = (2, 3, 4)


def distinct_places(a: Tensor) -> Tensor:
    """Each position along the last dim once, in an order that depends on a."""
    return a.flip(-1).argsort(-1)


def few_places(b: Tensor) -> Tensor:
    """1 or 2: several elements meet there, and none arrives elsewhere."""
    return (b > 0).long() + 1


def segment_softmax(x: Tensor, ids: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    for segment in ids.unique():
        rows = (ids == segment).nonzero()[:, 0]
        y = y.index_copy(0, rows, x[rows].softmax(0))
    return y


def reduce_at_places(a: Tensor, b: Tensor, reduce: str, include_self: bool) -> Tensor:
    return torch.scatter_reduce(a, 2, few_places(b), b, reduce, include_self=include_self) * a


def reduce_rows(a: Tensor, b: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Where a row arrives; PyTorch's gradient of the others is wrong without `include_self`."""
    y = a.index_reduce(1, torch.tensor([0, 2, 0, 2]), b, reduce, include_self=include_self)
    return y[:, [0, 2]] * a[:, [2, 0]]


SCATTER_CASES: Dict[str, Tuple[Tuple[int, ...], Function]] = {
    "scatter": (FULL, lambda a, b: a.scatter(2, distinct_places(a), b) * a),
    "scatter_of_few": ((2, 2, 3), lambda a, b: a.scatter(2, distinct_places(a)[:, :2, :2], b[..., :2]) * a),
    "scatter_of_a_value": ((4,), lambda a, b: a.scatter(2, distinct_places(a)[:, :, :2], 0.5) * b),
    "scatter_amax": (FULL, lambda a, b: reduce_at_places(a, b, "amax", True)),
    "scatter_amin_without_self": (FULL, lambda a, b: reduce_at_places(a, b, "amin", False)),
    "scatter_mean": (FULL, lambda a, b: reduce_at_places(a, b, "mean", True)),
    "scatter_mean_without_self": (FULL, lambda a, b: reduce_at_places(a, b, "mean", False)),
    "scatter_sum_without_self": (FULL, lambda a, b: reduce_at_places(a, b, "sum", False)),
    "index_copy": ((2, 2, 4), lambda a, b: a.index_copy(1, torch.tensor([2, 0]), b) * a),
    "index_amax": ((2, 4, 4), lambda a, b: reduce_rows(a, b, "amax", True)),
    "index_amin_without_self": ((2, 4, 4), lambda a, b: reduce_rows(a, b, "amin", False)),
    "index_mean": ((2, 4, 4), lambda a, b: reduce_rows(a, b, "mean", True)),
    "index_fill": ((4,), lambda a, b: a.index_fill(2, torch.tensor([1, 3]), 0.25) * b),
    "segment_softmax": ((4,), lambda a, b: segment_softmax(a.reshape(6, 4), torch.tensor([0, 3, 0, 1, 3, 0])) * b),
    "bucketize": (FULL, lambda a, b: a.gather(2, torch.bucketize(b, torch.tensor([-1.0, 0.0, 1.0]).double())) * b),
    "searchsorted": (
        (2, 3, 5),
        lambda a, b: a.gather(2, torch.searchsorted(a.sort(-1).values, b, right=True).clamp(max=3)) * b,
    ),
    "histc": ((6,), lambda a, b: torch.histc(a, 6, -1.5, 1.5) * b + a.sum()),
    "cummax": (FULL, lambda a, b: a.cummax(2).values * b),
    "cummin": (FULL, lambda a, b: a.cummin(1).values * b),
    "logcumsumexp": (FULL, lambda a, b: (a * 20).logcumsumexp(2) * b),
    "logcumsumexp_along_the_first": ((4,), lambda a, b: a.logcumsumexp(0) * b),
}
