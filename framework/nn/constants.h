// Functions of Vars whose elements are all the same number, and have no gradient. Names and meaning are
// those of PyTorch.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// Of a shape, for every micro-batch: sizes of at least 1, none for a scalar.
Var full(const Dims& shape, double value, DType dtype = DType::kF32);
Var zeros(const Dims& shape, DType dtype = DType::kF32);
Var ones(const Dims& shape, DType dtype = DType::kF32);

// Of the shape and dtype of x; in mixed precision, too, of the dtype that x has there.
Var full_like(Var x, double value);
Var zeros_like(Var x);
Var ones_like(Var x);

}  // namespace zg
