// Functions of Vars that multiply matrices, and normalise rows. Names and meaning are those of
// PyTorch.
#pragma once

#include <string_view>

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// a (..., M, K) times b (..., K, N) -> (..., M, N); leading dims are broadcast. A vector is a row on
// the left and a column on the right, whose dim of size 1 the result does not have.
Var matmul(Var a, Var b);

// Sums of products of two operands, "bhqd,bhkd->bhqk": what has a letter in both and not in the
// result is summed; so is what one of them has alone.
Var einsum(std::string_view equation, Var a, Var b);

// The logits of classes whose rows are `weight`: linear(x, weight) with columns up to the next multiple,
// where those added are -infinity, without probability and without gradient. The parameters stay
// as they are. For GPUs, whose products in 16 bits are fast where rows begin at multiples of 16 bytes,
// as those of a vocabulary of 50257 do not.
Var padded_logits(Var x, Var weight, int64_t multiple);

// exp(x) divided by its sum along one dim, and the logarithm of that.
Var softmax(Var x, int64_t dim = -1);
Var log_softmax(Var x, int64_t dim = -1);

}  // namespace zg
