// Products of very few rows with columns of B that lie along k, for processors with AVX-512: squares
// of B are transposed in registers and multiplied at once. No more than B itself is read, so that
// such a product runs at the speed of the memory.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_method.h"

namespace zg {

// Multiplies the first columns of a product as ComputeTile does, or ComputePairTile if `are_pairs`:
// `product.b` has pairs of bf16 that begin at whole pairs. Returns how many columns: whole
// vectors of them, none if the processor or the number of rows is another one.
int64_t MultiplyColumnsInRegisters(const ColumnsProduct& product, bool are_pairs);

}  // namespace zg
