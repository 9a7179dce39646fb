// Matrix products of bf16 on processors that multiply pairs of bf16 (AVX512_BF16): twice the
// arithmetic per instruction of f32. The layouts are those of gemm_tile.h with a pair of
// consecutive k, 32 bits, instead of a float; the last k of an odd depth is paired with a zero.
//
// Every element of C is one chain of pair products over ascending k, in every tile size. The
// processor defines how a pair is added (its denormal numbers count as 0), so the bits may differ
// from those of a processor without AVX512_BF16.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/cpu/gemm_tile.h"
#include "framework/tensor/half.h"

namespace zg {

bool HasPairProducts();  // whether this processor has them and kernels may use them (MayUse)

// Whether they are faster than products in f32. Intel's processors start a product of pairs on one
// port every second cycle (Sapphire Rapids: 81 GFLOP/s, where widened operands reach 148), AMD's on
// two ports in every cycle.
bool PairProductsAreFast();

inline constexpr int64_t NumPairs(int64_t depth) { return (depth + 1) / 2; }

// Like PackPanels and its siblings in gemm_pack.h; element (k, j) is in pair k / 2.
void PackPanelPairs(const BFloat16* b, int64_t stride, int64_t depth, int64_t columns,
                    float* panels);
void PackTransposedPanelPairs(const BFloat16* b, int64_t stride, int64_t next, int64_t depth,
                              int64_t columns, float* panels);
void PackPiecePairs(const BFloat16* a, int64_t stride, int64_t depth, int64_t rows, float* pieces);
void PackTransposedPiecePairs(const BFloat16* a, int64_t stride, int64_t depth, int64_t rows,
                              float* pieces);

// Like ComputeTile of gemm_tile.h; tile.depth counts pairs.
void ComputePairTile(const GemmTile& tile, int64_t rows, int64_t width);

// Only if HasPairProducts().
const GemmMethod& PairMethod();

}  // namespace zg
