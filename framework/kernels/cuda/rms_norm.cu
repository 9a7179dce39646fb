#include "framework/kernels/cuda/norm_grad.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/warp_rows.cuh"

namespace zg::cuda {
namespace {

template <typename T>
struct RmsNormArrays {
  const T* x;
  const T* weight;
  T* y;
  float* rrms;
};

template <int kPack, typename T>
__global__ void RmsNormKernel(RmsNormArrays<T> arrays, MatrixShape shape, float epsilon) {
  const int64_t row = RowOfWarp();
  if (row >= shape.rows) return;
  const T* const x = arrays.x + row * shape.columns;
  const int64_t first = static_cast<int64_t>(threadIdx.x % kWarp) * kPack;
  float squares = 0.0f;
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    const Floats<kPack> values = LoadFloats<kPack>(x + j);
#pragma unroll
    for (int i = 0; i < kPack; ++i) squares += values[i] * values[i];
  }
  const float size = static_cast<float>(shape.columns);
  const float rrms = 1.0f / sqrtf(WarpSum(squares) / size + epsilon);
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    Floats<kPack> values = LoadFloats<kPack>(x + j);
    const Floats<kPack> weight = LoadFloats<kPack>(arrays.weight + j);
#pragma unroll
    for (int i = 0; i < kPack; ++i) values[i] = values[i] * rrms * weight[i];
    StoreFloats(values, arrays.y + row * shape.columns + j);
  }
  if (first == 0) arrays.rrms[row] = rrms;
}

class RmsNorm : public Kernel {
 public:
  explicit RmsNorm(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        x_(AsMatrix(spec.call.inputs[0].shape)),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      constexpr int kPack = kPackOf<T>;
      const RmsNormArrays<T> arrays = {arguments.input<T>(0), arguments.input<T>(1),
                                       arguments.output<T>(0), arguments.output<float>(1)};
      const bool is_aligned =
          x_.columns % kPack == 0 && AreAligned(16, arrays.x, arrays.weight, arrays.y);
      return Launch(is_aligned ? RmsNormKernel<kPack, T> : RmsNormKernel<1, T>, WarpPerRow(x_.rows),
                    arguments.stream, arrays, x_, epsilon_);
    });
  }

 private:
  const DType dtype_;
  const MatrixShape x_;
  const float epsilon_;
};

}  // namespace

void RegisterRmsNormKernels(KernelRegistry& registry) {
  registry.Register("rms_norm", MakeKernel<RmsNorm>);
  registry.Register("rms_norm_grad", MakeKernel<NormGrad<false>>);
}

}  // namespace zg::cuda
