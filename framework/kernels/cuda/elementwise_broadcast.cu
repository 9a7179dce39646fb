#include "framework/kernels/cuda/elementwise_body.cuh"

namespace zg::cuda {
namespace {

// Packs are inside one row of `dims`, along which an operand is contiguous or constant.
template <typename T>
struct BroadcastBody {
  ElementwiseCode code;
  const T* a;
  const T* b;
  T* y;
  float scalar;
  StridedDims<2> dims;

  template <int kCount>
  __device__ Floats<kCount> Load(int operand, const T* data, int64_t begin) const {
    const T* const first = data + dims.OffsetOf(operand, begin);
    if (dims.strides[operand][dims.num_dims - 1] != 0) return LoadFloats<kCount>(first);
    Floats<kCount> same;
#pragma unroll
    for (int i = 0; i < kCount; ++i) same[i] = Widen(*first);
    return same;
  }

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    const Floats<kCount> left = Load<kCount>(0, a, begin);
    const Floats<kCount> right = Load<kCount>(1, b, begin);
    Floats<kCount> result;
#pragma unroll 1
    for (int i = 0; i < kCount; ++i) result[i] = Evaluate(code, left[i], right[i], scalar);
    StoreFloats(result, y + begin);
  }
};

// Whether packs end with rows, and begin at multiples of packs in every operand.
bool HasPacks(const StridedDims<2>& dims, int64_t pack) {
  const int last = dims.num_dims - 1;
  bool fits = dims.sizes[last] % pack == 0;
  for (int dim = 0; dim < last; ++dim) {
    for (int i = 0; i < 2; ++i) {
      fits = fits && (dims.strides[i][last] == 0 || dims.strides[i][dim] % pack == 0);
    }
  }
  return fits;
}

}  // namespace

Status RunBroadcast(ElementwiseCode code, const TensorType& type, const StridedDims<2>& dims,
                    const ElementwiseOperands& operands, void* stream) {
  return WithFloatType(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kPack = kPackOf<T>;
    const BroadcastBody<T> body = {code,
                                   static_cast<const T*>(operands.a),
                                   static_cast<const T*>(operands.b),
                                   static_cast<T*>(operands.y),
                                   operands.scalar,
                                   dims};
    return RunPacks<kPack>(body, HasPacks(dims, kPack) && AreAligned(16, body.a, body.b, body.y),
                           type.shape.num_elements(), stream);
  });
}

}  // namespace zg::cuda
