// Functions of Vars that multiply matrices, and that normalise rows. Names and meaning are
// PyTorch's.
#pragma once

#include <string_view>
#include <vector>

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// a (..., M, K) times b (..., K, N) -> (..., M, N); leading dims are broadcast. A vector is a row
// on the left and a column on the right, and the result lacks its dim of size 1.
Var matmul(Var a, Var b);

// Sums of products of two operands, "bhqd,bhkd->bhqk": a letter that is in both operands and not in
// the result is summed, and so is a letter that is in only one operand and not in the result. "..."
// stands for any number of dims, which are broadcast; a letter that an operand has twice is its diagonal;
// without "->" the result has the dims of "..." and the letters that occur once, in their order.
Var einsum(std::string_view equation, Var a, Var b);
// Any number of operands, such as "bi,oij,bj->bo", or one, "ii->". The products are taken from the left,
// and each keeps the dims that later operands or the result name.
Var einsum(std::string_view equation, const std::vector<Var>& operands);
// a[i] b[j] of two rows of numbers.
Var outer(Var a, Var b);

// y[.., m] = sum_k x[.., k] matrices[ids[..], k, m]: every row of x (..., K) times the one of the
// matrices (G, K, M), or (G, M, K) if they are `transposed`, as the weights of linear layers are, that
// its id (...) says; ids are i64 in [0, G), others end the job. Leading dims are broadcast: x (N, 1, K)
// and ids (N, k) give (N, k, M). For mixtures of experts without limits on the rows of an expert: takes
// about as long as one product of all rows, unless most matrices have only a few of them.
Var grouped_matmul(Var x, Var matrices, Var ids, bool transposed = false);

// The logits of classes whose rows are `weight`: linear(x, weight) with its columns padded to the
// next multiple. The added columns are -infinity, without probability and without gradient. The
// parameters stay unchanged. GPUs need this: their products in 16 bits are fast only if rows begin
// at multiples of 16 bytes, and those of a vocabulary of 50257 do not.
Var padded_logits(Var x, Var weight, int64_t multiple);

namespace nn {
// How many of the columns of logits are classes: of padded_logits those that it did not add, also where
// their shape, dtype or scale was changed since; else all.
int64_t NumClasses(Var logits);
}  // namespace nn

// exp(x) divided by its sum along one dim, and the logarithm of that.
Var softmax(Var x, int64_t dim = -1);
Var log_softmax(Var x, int64_t dim = -1);

}  // namespace zg
