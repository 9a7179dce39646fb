#include "framework/kernels/cpu/gemm_panels.h"

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
    PackTransposedPanels(data, block.stride, block.depth, block.count, panels);
  } else {
    PackPanels(data, block.stride, block.depth, block.count, panels);
  }
}

void Multiply(const BlockProduct& product) { MultiplyPanels<ComputeTile>(product, product.depth); }

// A block of A and two panels of B fill half of a second-level cache of 1 MB.
constexpr int64_t kMaxDepth = 384;

template <typename T>
constexpr GemmMethod kFloatMethod = {kTileRows, kPanelUnit, 1,        kMaxDepth,
                                     1,         PackA<T>,   PackB<T>, Multiply};

}  // namespace

const GemmMethod& FloatMethod(DType dtype) {
  return WithFloatType(dtype,
                       [](auto zero) -> const GemmMethod& { return kFloatMethod<decltype(zero)>; });
}

}  // namespace zg
