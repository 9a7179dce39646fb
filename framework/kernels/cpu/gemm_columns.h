// Products of very few rows with columns of B that lie along k, for processors with AVX-512: squares
// of B are transposed in registers and multiplied at once. No more than B itself is read, so that
// such a product runs at the speed of the memory.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_method.h"

namespace zg {

// Multiplies the first columns of a product, of which B has elements of T (float, BFloat16 or
// Float16), as ComputeTile does. Returns how many columns: whole vectors of them, but none without
// AVX-512, and none of a product with more rows than a tile.
template <typename T>
int64_t MultiplyColumnsInRegisters(const ColumnsProduct& product);

// The same as ComputePairTile does; columns of bf16 begin and end at whole pairs.
int64_t MultiplyPairColumnsInRegisters(const ColumnsProduct& product);

}  // namespace zg
