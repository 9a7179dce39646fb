// Functions of Vars whose elements are all the same number, and have no gradient. Names and meaning are
// those of PyTorch.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// Constants of a shape, the same in every micro-batch. Sizes are at least 1; no sizes give a scalar.
Var full(const Dims& shape, double value, DType dtype = DType::kF32);
Var zeros(const Dims& shape, DType dtype = DType::kF32);
Var ones(const Dims& shape, DType dtype = DType::kF32);

// Constants of the shape and dtype of x, also of the dtype that x has in mixed precision.
Var full_like(Var x, double value);
Var zeros_like(Var x);
Var ones_like(Var x);

}  // namespace zg
