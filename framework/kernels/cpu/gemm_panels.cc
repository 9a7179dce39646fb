#include "framework/kernels/cpu/gemm_panels.h"

#include <type_traits>

#include "framework/kernels/cpu/gemm_columns.h"
#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

template <typename T>
void PackA(const StoredBlock& block, float* pieces) {
  const T* const data = static_cast<const T*>(block.data);
  if (block.runs_along_k) {
    PackPieces(data, block.stride, block.depth, block.count, pieces);
  } else {
    PackTransposedPieces(data, block.stride, block.depth, block.count, pieces);
  }
}

template <typename T>
void PackB(const StoredBlock& block, float* panels) {
  const T* const data = static_cast<const T*>(block.data);
  if (block.runs_along_k) {
    PackTransposedPanels(data, block.stride, kPanelUnit * block.stride, block.depth, block.count,
                         panels);
  } else {
    PackPanels(data, block.stride, block.depth, block.count, panels);
  }
}

template <typename T>
void MultiplyColumns(const ColumnsProduct& product) {
  const int64_t done = MultiplyColumnsInRegisters<T>(product);
  // By whichever takes longer.
  const bool packing_prefetches = product.rows < kTileRows;
  MultiplyShortPanels<ComputeTile>(product.From<T>(done), 1, packing_prefetches,
                                   PackTransposedPanels<T>);
}

void Multiply(const BlockProduct& product) { MultiplyPanels<ComputeTile>(product, product.depth); }

template <typename T>
constexpr GemmMethod FloatMethodOf() {
  GemmMethod method = {};
  method.row_unit = kTileRows;
  method.column_unit = kPanelUnit;
  method.depth_unit = 1;
  method.packed_k = 1;
  // A block of A and two panels of B fill half of a second-level cache of 1 MB.
  method.max_rows = 256;
  method.max_depth = 384;
  // In 16 bits the sums of a block take more of the cache than those of f32, which are C itself.
  method.max_columns = std::is_same_v<T, float> ? 1536 : 384;
  method.max_b_size = method.max_columns * method.max_depth;
  method.sum_columns = method.max_columns;
  method.pack_a = PackA<T>;
  method.pack_b = PackB<T>;
  method.multiply = Multiply;
  method.pack_few_rows = PackA<T>;
  method.multiply_columns = MultiplyColumns<T>;
  if (std::is_same_v<T, BFloat16>) method.round = RoundSums<DType::kBF16>;
  if (std::is_same_v<T, Float16>) method.round = RoundSums<DType::kF16>;
  return method;
}

template <typename T>
constexpr GemmMethod kFloatMethod = FloatMethodOf<T>();

}  // namespace

const GemmMethod& FloatMethod(DType dtype) {
  return WithFloatType(dtype,
                       [](auto zero) -> const GemmMethod& { return kFloatMethod<decltype(zero)>; });
}

}  // namespace zg
