#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/warp_rows.cuh"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/top_k_order.h"

namespace zg::cuda {
namespace {

struct TopKShape {
  int64_t columns;  // of all matrices x[size, inner]
  int64_t size;
  int64_t inner;
  int64_t k;
  float sign;  // -1 for the smallest
};

// The first of the lanes' elements in the order, in every lane. Index -1 is none.
__device__ inline RankedElement FirstOfWarp(RankedElement own) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const RankedElement other = {__shfl_xor_sync(0xffffffffu, own.value, distance),
                                 __shfl_xor_sync(0xffffffffu, own.index, distance)};
    const bool takes = other.index >= 0 && (own.index < 0 || ComesBefore(other, own));
    if (takes) own = other;
  }
  return own;
}

// Each element of the result is the first one after the previous element. kLanes lanes process a
// column: a warp if its elements are contiguous, else a thread.
template <int kLanes, typename T>
__global__ void TopKKernel(const T* x, T* values, int64_t* indices, TopKShape shape) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t column = thread / kLanes;
  if (column >= shape.columns) return;
  const int64_t outer = column / shape.inner, inner = column % shape.inner;
  const T* const from = x + outer * shape.size * shape.inner + inner;
  RankedElement last = {0.0f, -1};
  for (int64_t place = 0; place < shape.k; ++place) {
    RankedElement best = {0.0f, -1};
    for (int64_t i = thread % kLanes; i < shape.size; i += kLanes) {
      const RankedElement candidate = {Widen(from[i * shape.inner]) * shape.sign, i};
      const bool is_behind = last.index < 0 || ComesBefore(last, candidate);
      if (is_behind && (best.index < 0 || ComesBefore(candidate, best))) best = candidate;
    }
    if (kLanes == kWarp) best = FirstOfWarp(best);
    last = best;
    if (thread % kLanes != 0) continue;
    const int64_t to = (outer * shape.k + place) * shape.inner + inner;
    indices[to] = best.index;
    values[to] = from[best.index * shape.inner];
  }
}

class TopK : public Kernel {
 public:
  explicit TopK(const KernelSpec& spec) : dtype_(spec.outputs[0].dtype) {
    const DimView x(spec.call.inputs[0].shape, spec.call.attributes.Int("dim"));
    shape_ = {x.outer * x.inner, x.size, x.inner, spec.call.attributes.Int("k"),
              spec.call.attributes.Bool("largest") ? 1.0f : -1.0f};
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const bool by_warp = shape_.inner == 1;
      return Launch(by_warp ? TopKKernel<kWarp, T> : TopKKernel<1, T>,
                    Threads(shape_.columns * (by_warp ? kWarp : 1)), arguments.stream,
                    arguments.input<T>(0), arguments.output<T>(0), arguments.output<int64_t>(1),
                    shape_);
    });
  }

 private:
  const DType dtype_;
  TopKShape shape_;
};

}  // namespace

void RegisterTopKKernels(KernelRegistry& registry) { registry.Register("top_k", MakeKernel<TopK>); }

}  // namespace zg::cuda
