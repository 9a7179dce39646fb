// Functions of Vars that are constants, and have no gradient. Names and meaning are those of PyTorch;
// whole numbers in order are arange (indexing.h).
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// One number everywhere in a shape, the same in every micro-batch. Sizes are at least 1; no sizes
// give a scalar.
Var full(const Dims& shape, double value, DType dtype = DType::kF32);
Var zeros(const Dims& shape, DType dtype = DType::kF32);
Var ones(const Dims& shape, DType dtype = DType::kF32);

// These numbers, row-major: index tables, anchors, weights of classes. They are part of the program,
// not of checkpoints; a table of many thousand numbers is better fed as an input with Sbp::B().
Var constant(const Dims& shape, const std::vector<float>& numbers);
Var constant(const Dims& shape, const std::vector<int64_t>& numbers);

// The same in the shape and dtype of x, also in the dtype that x has in mixed precision.
Var full_like(Var x, double value);
Var zeros_like(Var x);
Var ones_like(Var x);

Var eye(int64_t size);  // f32 (size, size): 1 on the diagonal, else 0
// f32 (count): numbers at equal distances, from `start` to `end`.
Var linspace(double start, double end, int64_t count);

}  // namespace zg
