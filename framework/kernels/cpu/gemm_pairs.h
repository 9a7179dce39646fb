// Matrix products of bf16 on processors that multiply pairs of bf16 (AVX512_BF16): twice the
// arithmetic per instruction of f32. The layouts are those of gemm_tile.h with a pair of
// consecutive k, 32 bits, in the place of a float; the last k of an odd depth has a zero beside it.
//
// Every element of C is one chain of pair products over ascending k, in every tile size. A pair is
// added as the processor does it (its denormal numbers count as 0), so the bits may differ from
// those of a processor without.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/cpu/gemm_tile.h"
#include "framework/tensor/half.h"

namespace zg {

bool HasPairProducts();  // of this processor, where kernels may use them (MayUse)

// Whether they outrun products in f32. Intel's processors begin a product of pairs on one port
// every second cycle (Sapphire Rapids: 81 GFLOP/s where widened operands reach 148), AMD's on two
// ports in each.
bool PairProductsAreFast();

inline constexpr int64_t NumPairs(int64_t depth) { return (depth + 1) / 2; }

// As PackPanels and so on of gemm_pack.h; element (k, j) stands in pair k / 2.
void PackPanelPairs(const BFloat16* b, int64_t stride, int64_t depth, int64_t columns,
                    float* panels);
void PackTransposedPanelPairs(const BFloat16* b, int64_t stride, int64_t depth, int64_t columns,
                              float* panels);
void PackPiecePairs(const BFloat16* a, int64_t stride, int64_t depth, int64_t rows, float* pieces);
void PackTransposedPiecePairs(const BFloat16* a, int64_t stride, int64_t depth, int64_t rows,
                              float* pieces);

// As ComputeTile of gemm_tile.h; tile.depth counts pairs.
void ComputePairTile(const GemmTile& tile, int64_t rows, int64_t width);

// Where HasPairProducts().
const GemmMethod& PairMethod();

}  // namespace zg
