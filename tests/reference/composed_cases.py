"""Cases of make_functions.py for functions and modules that are made of others."""

from typing import Callable, Dict, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

Function = Callable[[Tensor, Tensor], Tensor]
FULL = (2, 3, 4)


def run_recurrence(module: torch.nn.Module, a: Tensor, b: Tensor) -> Tensor:
    """The results of a layer, or of a cell element by element, with its parameters out of b, in their order."""
    parameters, begin = {}, 0
    for name, parameter in module.named_parameters():
        parameters[name] = b[begin : begin + parameter.numel()].reshape(parameter.shape)
        begin += parameter.numel()
    assert begin == b.numel(), begin
    if isinstance(module, torch.nn.RNNBase):
        return functional_call(module, parameters, (a,))[0]
    state, results = None, []
    for t in range(a.shape[1]):
        state = functional_call(module, parameters, (a[:, t], state))
        results.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(results, 1)


def run_decays(x: torch.Tensor, decay: torch.Tensor, before: float | torch.Tensor = 0.0) -> torch.Tensor:
    """h = decay h + x along the last dim."""
    states = [decay[..., 0] * before + x[..., 0]]
    for i in range(1, x.shape[-1]):
        states.append(decay[..., i] * states[-1] + x[..., i])
    return torch.stack(states, -1)


def sum_of_parts(x: Tensor, factor: Tensor) -> Tensor:
    return x.real * factor + x.imag


def bags(a: Tensor, table: Tensor, **options) -> Tensor:
    """Three bags of two ids, one of which is padding in one of them, and both in another."""
    return F.embedding_bag(torch.tensor([[0, 3], [1, 4], [1, 1]]), table, **options) * a[0]


COMPOSED_CASES: Dict[str, Tuple[Tuple[int, ...], Function]] = {
    "pad_reflect": ((7,), lambda a, b: F.pad(a.reshape(2, 1, 3, 4), (2, 1, 1, 2), mode="reflect") * b),
    "pad_replicate": ((7,), lambda a, b: F.pad(a.reshape(2, 1, 3, 4), (2, 1, 1, 2), mode="replicate") * b),
    "pad_circular": ((7,), lambda a, b: F.pad(a.reshape(2, 1, 3, 4), (2, 1, 1, 2), mode="circular") * b),
    "movedim": ((3,), lambda a, b: a.movedim(2, 0) * b),
    "unflatten": ((2,), lambda a, b: a.unflatten(2, (2, -1)) * b),
    "repeat_interleave": ((4,), lambda a, b: torch.repeat_interleave(a, 3, dim=1) * b),
    "diff": ((4,), lambda a, b: torch.diff(a, dim=1) * b),
    "channel_shuffle": ((2,), lambda a, b: F.channel_shuffle(a.reshape(1, 6, 2, 2), 3) * b),
    "adaptive_max_pool2d": ((3,), lambda a, b: F.adaptive_max_pool2d(a.reshape(2, 1, 3, 4), (2, 3)) * b),
    "adaptive_avg_pool1d": ((3,), lambda a, b: F.adaptive_avg_pool1d(a, 3) * b),
    "quantile": ((3,), lambda a, b: torch.quantile(a, 0.3, dim=2) * b),
    "median": ((3,), lambda a, b: a.median(dim=2).values * b),
    "pairwise_distance": (FULL, lambda a, b: F.pairwise_distance(a, b)),
    "cdist": ((2, 5, 4), lambda a, b: torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")),
    "soft_margin_loss": (FULL, lambda a, b: F.soft_margin_loss(a, b.sign().detach(), reduction="none") + b),
    "multilabel_soft_margin_loss": (
        (6, 4),
        lambda a, b: F.multilabel_soft_margin_loss(a.reshape(6, 4), torch.sigmoid(b).detach(), reduction="none")
        + b.sum(),
    ),
    "multi_margin_loss": (
        (6,),
        lambda a, b: F.multi_margin_loss(
            a.reshape(6, 4), torch.tensor([0, 3, 1, 2, 2, 0]), margin=0.7, reduction="none"
        )
        * b,
    ),
    "einsum_of_three": ((4, 5), lambda a, b: torch.einsum("bij,jk,bi->bk", a, b, a[:, :, 0])),
    "outer": ((3,), lambda a, b: torch.outer(a.flatten(), b)),
    "tanhshrink": (FULL, lambda a, b: F.tanhshrink(a) * b),
    "softshrink": (FULL, lambda a, b: F.softshrink(a, 0.7) * b),
    "hardshrink": (FULL, lambda a, b: F.hardshrink(a, 0.7) * b),
    "threshold": (FULL, lambda a, b: F.threshold(a, 0.3, -2.0) * b),
    "group_norm_alone": ((2,), lambda a, b: F.group_norm(a.reshape(2, 6, 2), 3) * b),
    "instance_norm": ((4,), lambda a, b: F.instance_norm(a) * b),
    "bilinear": ((3, 4, 4), lambda a, b: F.bilinear(a, a.flip(2), b)),
    "rnn": ((16,), lambda a, b: run_recurrence(torch.nn.RNN(4, 2, batch_first=True), a, b)),
    "rnn_relu": ((16,), lambda a, b: run_recurrence(torch.nn.RNN(4, 2, 1, "relu", batch_first=True), a, b)),
    "rnn_cell": ((16,), lambda a, b: run_recurrence(torch.nn.RNNCell(4, 2), a, b)),
    "gru_cell": ((48,), lambda a, b: run_recurrence(torch.nn.GRUCell(4, 2), a, b)),
    "lstm_cell": ((64,), lambda a, b: run_recurrence(torch.nn.LSTMCell(4, 2), a, b)),
    "lstm": ((64,), lambda a, b: run_recurrence(torch.nn.LSTM(4, 2, batch_first=True), a, b)),
    "gru": ((48,), lambda a, b: run_recurrence(torch.nn.GRU(4, 2, batch_first=True), a, b)),
    "adaptive_max_pool2d_of_equal_windows": (
        (2,),
        lambda a, b: F.adaptive_max_pool2d(a.reshape(2, 1, 3, 4), (1, 2)) * b,
    ),
    "cdist_of_many_rows": (
        (2, 30, 4),
        lambda a, b: torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist"),
    ),
    "linear_recurrence": (FULL, lambda a, b: run_decays(a, b)),
    "linear_recurrence_from_end": ((3, 1), lambda a, b: run_decays(a.flip(2), b.expand(FULL).flip(2)).flip(2)),
    "grouped_matmul": (
        (2, 4, 5),
        lambda a, b: torch.einsum("bik,bikm->bim", a, b[torch.tensor([[0, 1, 0], [0, 1, 0]])]),
    ),
    "grouped_matmul_of_several": (
        (3, 5, 4),
        lambda a, b: torch.einsum("bik,jmk->bijm", a, b[torch.tensor([2, 0])]),
    ),
    "rfft": ((2, 3, 3), lambda a, b: sum_of_parts(torch.fft.rfft(a), b)),
    "rfft_of_an_odd_size": ((2, 2, 4), lambda a, b: sum_of_parts(torch.fft.rfft(a, dim=1), b)),
    "fft": (FULL, lambda a, b: sum_of_parts(torch.fft.fft(torch.complex(a, b), dim=1), a)),
    "ifft": (FULL, lambda a, b: sum_of_parts(torch.fft.ifft(torch.complex(a, b)), a)),
    "irfft": (FULL, lambda a, b: torch.fft.irfft(torch.complex(a, b), n=6) ** 2),
    "irfft_of_an_odd_size": (FULL, lambda a, b: torch.fft.irfft(torch.complex(a, b), n=5, dim=1) ** 2),
    "convolution_by_rfft2": (
        FULL,
        lambda a, b: torch.fft.irfft2(torch.fft.rfft2(a) * torch.fft.rfft2(b).conj(), s=(3, 4)),
    ),
    "stft": (
        (8,),
        lambda a, b: torch.stft(a.reshape(2, 12), 8, 3, window=b, return_complex=True).abs(),
    ),
    "stft_not_centred": (
        (6,),
        lambda a, b: sum_of_parts(
            torch.stft(a.reshape(2, 12), 6, 2, window=b.cos(), center=False, return_complex=True), a.sum()
        ),
    ),
    "istft": (
        (8,),
        lambda a, b: torch.istft(
            torch.stft(a.reshape(2, 12), 8, 2, window=b, return_complex=True) * (1 + 0.5j),
            8,
            2,
            window=b.square() + 0.5,
            length=11,
        ),
    ),
    "roll_along_two_dims": (FULL, lambda a, b: torch.roll(a, (1, -2), (1, 2)) * b),
    "rfft_of_few": ((2, 3, 2), lambda a, b: sum_of_parts(torch.fft.rfft(a)[..., :2], b)),
    "irfft_of_few": (FULL, lambda a, b: torch.fft.irfft(torch.complex(a, b), n=10) ** 2),
    "bce_with_weights": (
        FULL,
        lambda a, b: F.binary_cross_entropy_with_logits(
            a,
            torch.sigmoid(b),
            weight=b[0].abs().detach(),
            pos_weight=torch.tensor([0.5, 2.0, 3.0, 1.0]),
            reduction="none",
        ),
    ),
    "binary_cross_entropy": (
        FULL,
        lambda a, b: F.binary_cross_entropy(
            torch.sigmoid(a), torch.sigmoid(b), weight=b[0].abs().detach(), reduction="none"
        ),
    ),
    "embedding_bag_sum": ((5, 4), lambda a, b: bags(a, b, mode="sum", padding_idx=1)),
    "embedding_bag_mean": ((5, 4), lambda a, b: bags(a, b, mode="mean", padding_idx=1)),
    "embedding_bag_max": ((5, 4), lambda a, b: bags(a, b, mode="max", padding_idx=1)),
    "embedding_bag_weighted": (
        (5, 4),
        lambda a, b: bags(
            a, b, mode="sum", per_sample_weights=torch.tensor([[0.5, 2.0], [1.0, -1.0], [0.0, 3.0]]).double()
        ),
    ),
    "layer_norm_without_parameters": ((4,), lambda a, b: F.layer_norm(a, (4,)) * b),
    "attention_with_a_bias_of_keys": (
        (2, 1, 1, 3),
        lambda a, b: F.scaled_dot_product_attention(
            a[:, None], a[:, None].flip(2), a[:, None] ** 2, attn_mask=b
        )[:, 0],
    ),
    "constants": ((3,), lambda a, b: a[:, :, [3, 0, 0]] * torch.tensor([0.1, -2.5, 7.0]).float().double() * b),
    "einsum_with_dots": ((3, 1, 4), lambda a, b: torch.einsum("...d,k...d->...k", a, b)),
    "einsum_of_diagonals": ((3, 4, 3), lambda a, b: torch.einsum("nik,iki", a, b)),
    "einsum_of_one": ((2,), lambda a, b: torch.einsum("ijj->ij", a[..., :3]).sum(1) * b),
    "trace_by_einsum": ((2,), lambda a, b: torch.einsum("...ii", a[..., :3]) * b),
    "linear_recurrence_with_a_state": (FULL, lambda a, b: run_decays(a, b, a[..., 1] * b[..., 2])),
    "linear_recurrence_with_a_state_from_end": (
        FULL,
        lambda a, b: run_decays(a.flip(2), b.flip(2), a[..., 1]).flip(2),
    ),
    "argmax_of_integers": (
        (3,),
        lambda a, b: b * torch.gather(a, 2, (a * 2**33).long().argmax(2, keepdim=True))[..., 0],
    ),
    "min_of_integers": ((4,), lambda a, b: b * (a * 2**33).long().amin((0, 1)) * 2.0**-33 + a.sum()),
    "interpolate_bicubic": (
        (1,),
        lambda a, b: F.interpolate(a.reshape(1, 2, 3, 4), (2, 9), mode="bicubic", align_corners=False) * b,
    ),
    "interpolate_bicubic_corners": (
        (1,),
        lambda a, b: F.interpolate(a.reshape(1, 2, 3, 4), (5, 7), mode="bicubic", align_corners=True) * b,
    ),
}
