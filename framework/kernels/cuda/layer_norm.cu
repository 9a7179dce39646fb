#include "framework/kernels/cuda/norm_grad.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/warp_rows.cuh"
#include "framework/kernels/math/deviation_math.h"

namespace zg::cuda {
namespace {

template <typename T>
struct LayerNormArrays {
  const T* x;
  const T* gamma;
  const T* beta;
  T* y;
  float* mean;
  float* rstd;
};

// The variance is that of the differences from the mean (two passes, no cancellation).
template <int kPack, typename T>
__global__ void LayerNormKernel(LayerNormArrays<T> arrays, MatrixShape shape, float epsilon) {
  const int64_t row = RowOfWarp();
  if (row >= shape.rows) return;
  const T* const x = arrays.x + row * shape.columns;
  const int64_t first = static_cast<int64_t>(threadIdx.x % kWarp) * kPack;
  const float size = static_cast<float>(shape.columns);
  float sum = 0.0f;
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    const Floats<kPack> values = LoadFloats<kPack>(x + j);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum += values[i];
  }
  const float mean = WarpSum(sum) / size;
  float squares = 0.0f;
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    const Floats<kPack> values = LoadFloats<kPack>(x + j);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float difference = values[i] - mean;
      squares += difference * difference;
    }
  }
  const float rstd = InverseDeviation(WarpSum(squares) / size, epsilon);
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    Floats<kPack> values = LoadFloats<kPack>(x + j);
    const Floats<kPack> gamma = LoadFloats<kPack>(arrays.gamma + j);
    const Floats<kPack> beta = LoadFloats<kPack>(arrays.beta + j);
#pragma unroll
    for (int i = 0; i < kPack; ++i) values[i] = (values[i] - mean) * rstd * gamma[i] + beta[i];
    StoreFloats(values, arrays.y + row * shape.columns + j);
  }
  if (first == 0) {
    arrays.mean[row] = mean;
    arrays.rstd[row] = rstd;
  }
}

class LayerNorm : public Kernel {
 public:
  explicit LayerNorm(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        x_(AsMatrix(spec.call.inputs[0].shape)),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      constexpr int kPack = kPackOf<T>;
      const LayerNormArrays<T> arrays = {arguments.input<T>(0),      arguments.input<T>(1),
                                         arguments.input<T>(2),      arguments.output<T>(0),
                                         arguments.output<float>(1), arguments.output<float>(2)};
      const bool is_aligned =
          x_.columns % kPack == 0 && AreAligned(16, arrays.x, arrays.gamma, arrays.beta, arrays.y);
      return Launch(is_aligned ? LayerNormKernel<kPack, T> : LayerNormKernel<1, T>,
                    WarpPerRow(x_.rows), arguments.stream, arrays, x_, epsilon_);
    });
  }

 private:
  const DType dtype_;
  const MatrixShape x_;
  const float epsilon_;
};

}  // namespace

void RegisterLayerNormKernels(KernelRegistry& registry) {
  registry.Register("layer_norm", MakeKernel<LayerNorm>);
  registry.Register("layer_norm_grad", MakeKernel<NormGrad<true>>);
}

}  // namespace zg::cuda
