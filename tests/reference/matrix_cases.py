"""Cases of make_functions.py for functions of matrices, and special functions."""

from typing import Callable, Dict, Tuple

import torch
from torch import Tensor

Function = Callable[[Tensor, Tensor], Tensor]
FULL = (2, 3, 4)


def regular(a: Tensor) -> Tensor:
    """(2, 3, 3): far from singular, with pivots beside the diagonal."""
    return a[..., :3] * 0.3 + 2 * torch.eye(3, dtype=a.dtype).roll(1, 1)


def definite(a: Tensor) -> Tensor:
    """(2, 3, 3): symmetric and positive definite."""
    return a @ a.mT + torch.eye(3, dtype=a.dtype)


def positive(x: Tensor) -> Tensor:
    return x * x + 0.5


def with_holes(a: Tensor) -> Tensor:
    """Infinite above 0.5, NaN below -0.5."""
    holes = torch.where(a > 0, torch.inf, torch.nan)
    return torch.where(a.abs() > 0.5, holes.to(a.dtype), a)


MATRIX_CASES: Dict[str, Tuple[Tuple[int, ...], Function]] = {
    "solve": ((2, 3, 2), lambda a, b: torch.linalg.solve(regular(a), b)),
    "solve_of_one_for_all": ((3, 2), lambda a, b: torch.linalg.solve(regular(a), b)),
    "solve_of_a_vector": ((3,), lambda a, b: torch.linalg.solve(regular(a), b)),
    "inverse": ((3, 3), lambda a, b: torch.linalg.inv(regular(a)) * b),
    "det": ((2,), lambda a, b: torch.linalg.det(regular(a)) * b),
    "slogdet": ((2,), lambda a, b: torch.linalg.slogdet(regular(-a)).logabsdet * b),
    "logdet": ((2,), lambda a, b: torch.logdet(definite(a)) * b),
    "cholesky": ((3, 3), lambda a, b: torch.linalg.cholesky(definite(a)) * b),
    "cholesky_solve": ((2, 3, 2), lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(definite(a)))),
    "solve_triangular": (
        (2, 3, 2),
        lambda a, b: torch.linalg.solve_triangular(definite(a), b, upper=False),
    ),
    "solve_triangular_upper": (
        (3, 2),
        lambda a, b: torch.linalg.solve_triangular(definite(a), b, upper=True, unitriangular=True),
    ),
    "matrix_power": ((3, 3), lambda a, b: torch.linalg.matrix_power(regular(a) * 0.5, 5) * b),
    "matrix_power_below_0": ((3, 3), lambda a, b: torch.linalg.matrix_power(regular(a), -2) * b),
    "trace": ((2,), lambda a, b: regular(a).diagonal(dim1=-2, dim2=-1).sum(-1) * b),
    "cross": ((3, 1), lambda a, b: torch.linalg.cross(a, b.expand(2, 3, 4), dim=1)),
    "kron": ((2, 3), lambda a, b: torch.kron(a[0], b)),
    "erfc": (FULL, lambda a, b: torch.erfc(a) * b),
    "erfcx": (FULL, lambda a, b: torch.special.erfcx(a) * b),
    "erfinv": (FULL, lambda a, b: torch.erfinv(torch.tanh(a) * 0.9) * b),
    "ndtr": (FULL, lambda a, b: torch.special.ndtr(a) * b),
    "log_ndtr": (FULL, lambda a, b: torch.special.log_ndtr(a * 4) * b),
    "lgamma": (FULL, lambda a, b: torch.lgamma(positive(a)) * b),
    "lgamma_below_0": (FULL, lambda a, b: torch.lgamma(a.round() + torch.tanh(a) * 0.25 - 2.5) * b),
    "digamma": (FULL, lambda a, b: torch.digamma(positive(a)) * b),
    "logit": (FULL, lambda a, b: torch.logit(torch.sigmoid(a) * 0.9) * b),
    "xlogy": (FULL, lambda a, b: torch.xlogy(torch.relu(a), positive(b))),
    "sinc": (FULL, lambda a, b: torch.sinc(a) * b),
    "hypot": (FULL, lambda a, b: torch.hypot(a, b)),
    "frac": (FULL, lambda a, b: torch.frac(a) * b),
    "remainder": (FULL, lambda a, b: torch.remainder(a, torch.exp(b))),
    "fmod": (FULL, lambda a, b: torch.fmod(a, torch.exp(b))),
    "nan_to_num": (FULL, lambda a, b: torch.nan_to_num(with_holes(a), 3.0, 7.0) * b),
}
