// Functions of Vars that go over the tokens of texts, dim 1 of x (B, S, ...). While decoding, they
// continue from what earlier runs have left (decoding.h).
#pragma once

#include <cstdint>

#include "framework/nn/var.h"

namespace zg {

// linear_recurrence (reductions.h) along dim 1 of both, which have one shape (B, S, ...).
Var recurrence_over_tokens(Var decay, Var x);

// The scan of Mamba (arXiv 2312.00752): h_t = exp(step_t a) h_(t-1) + step_t x_t b_t for each of D
// channels and N states, and y_t = sum over n of h_tn c_tn. Shapes: x, step, y (B, S, D), a (D, N),
// b, c (B, S, N). The states of all tokens are never in memory: backward computes them again.
Var selective_scan(Var x, Var step, Var a, Var b, Var c);

// x (B, S, C) -> (B, count + S, C): the `count` tokens before the first one of each text, in front of
// its S; zeros where there are none. For convolutions and shifts that look back:
//   conv(transpose(with_earlier_tokens(x, kernel - 1), 1, 2))
Var with_earlier_tokens(Var x, int64_t count);

}  // namespace zg
