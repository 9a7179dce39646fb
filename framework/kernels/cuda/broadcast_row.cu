#include "framework/kernels/cuda/broadcast_row.h"
#include "framework/kernels/cuda/packs.cuh"

namespace zg::cuda {
namespace {

template <typename T>
struct BroadcastRowBody {
  const T* row;     // null: zeros
  const T* addend;  // likewise
  T* matrix;
  int64_t columns;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    static_assert(kCount == 1);
    const float value = row == nullptr ? 0.0f : Widen(row[begin % columns]);
    matrix[begin] = Round<T>(addend == nullptr ? value : value + Widen(addend[begin]));
  }
};

}  // namespace

Status BroadcastRow(const RowsToFill& shape, const void* row, const void* addend, void* matrix,
                    void* stream) {
  return WithFloatType(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    const BroadcastRowBody<T> body = {static_cast<const T*>(row), static_cast<const T*>(addend),
                                      static_cast<T*>(matrix), shape.columns};
    return RunPacks<1>(body, false, shape.rows * shape.columns, stream);
  });
}

}  // namespace zg::cuda
