// Functions of matrices, the last two dims; leading dims are a batch, and those of two operands are
// broadcast (a copy). Names and meaning are those of torch.linalg unless stated otherwise. Computed in
// f32, also in mixed precision, and differentiable twice. For matrices of up to some hundred rows:
// each is one thread's work, or that of one block of a GPU's threads.
#pragma once

#include "framework/nn/functions.h"
#include "framework/nn/var.h"

namespace zg {

// x with a x = b, for a (..., n, n) and b (..., n, k), or a vector b (n). A singular matrix ends the
// job.
Var solve(Var a, Var b);
// Better than inverse(a) times b is solve(a, b).
Var inverse(Var a);

// The sign of the determinant, without gradient, and the logarithm of its magnitude, each (...). Of a
// singular matrix they are 0 and -infinity; its gradient ends the job.
struct Slogdet {
  Var sign;
  Var logabsdet;
};
Slogdet slogdet(Var a);
Var det(Var a);
Var logdet(Var a);  // NaN where the determinant is negative (torch.logdet)

// The lower triangular l with l l' = a, for symmetric positive definite a: (a + a') / 2 is read, where
// PyTorch reads the lower triangle. Another matrix ends the job.
Var cholesky(Var a);
// x with l l' x = b (torch.cholesky_solve, whose operands are in this order).
Var cholesky_solve(Var b, Var l);

// x with t x = b, where t is the upper or lower triangle of a; with ones on its diagonal if `unit`.
Var solve_triangular(Var a, Var b, bool upper, bool unit = false);

// a a ... a; of a negative exponent that of the inverse.
Var matrix_power(Var a, int64_t exponent);

// (...): the sum of the diagonal (torch.trace).
Var trace(Var a);
// The products of vectors of 3 elements along a dim; shapes are broadcast.
Var cross(Var a, Var b, int64_t dim = -1);
// The product of two matrices without leading dims: a block a_ij b for each of a's elements.
Var kron(Var a, Var b);

}  // namespace zg
