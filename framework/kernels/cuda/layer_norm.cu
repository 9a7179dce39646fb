#include "framework/kernels/cuda/column_sum.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/warp_rows.cuh"

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
  const float rstd = 1.0f / sqrtf(WarpSum(squares) / size + epsilon);
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

template <typename T>
struct LayerNormGradArrays {
  const T* dy;
  const T* x;
  const T* gamma;
  const float* mean;
  const float* rstd;
  T* dx;
};

// With n = (x - mean) rstd: dgamma = sum over rows of dy n, dbeta = sum over rows of dy.
template <typename T>
struct ParameterGradientTerms {
  static constexpr int kSums = 2;
  LayerNormGradArrays<T> arrays;
  int64_t columns;

  template <int kCount>
  __device__ void Add(int64_t row, int64_t column, Floats<kCount> (&sums)[kSums]) const {
    const int64_t at = row * columns + column;
    const Floats<kCount> dy = LoadFloats<kCount>(arrays.dy + at);
    const Floats<kCount> x = LoadFloats<kCount>(arrays.x + at);
    const float mean = arrays.mean[row];
    const float rstd = arrays.rstd[row];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      sums[0][i] += dy[i] * ((x[i] - mean) * rstd);
      sums[1][i] += dy[i];
    }
  }
};

// With d = dy gamma: dx = (d - (mean of d + n mean of (d n))) rstd. `dx` may be `dy` or `x`.
template <int kPack, typename T>
__global__ void LayerNormGradKernel(LayerNormGradArrays<T> arrays, MatrixShape shape) {
  const int64_t row = RowOfWarp();
  if (row >= shape.rows) return;
  const T* const dy_row = arrays.dy + row * shape.columns;
  const T* const x_row = arrays.x + row * shape.columns;
  const int64_t first = static_cast<int64_t>(threadIdx.x % kWarp) * kPack;
  const float size = static_cast<float>(shape.columns);
  const float mean = arrays.mean[row];
  const float rstd = arrays.rstd[row];
  float sum_d = 0.0f;
  float sum_dn = 0.0f;
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    const Floats<kPack> dy = LoadFloats<kPack>(dy_row + j);
    const Floats<kPack> x = LoadFloats<kPack>(x_row + j);
    const Floats<kPack> gamma = LoadFloats<kPack>(arrays.gamma + j);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float d = dy[i] * gamma[i];
      sum_d += d;
      sum_dn += d * ((x[i] - mean) * rstd);
    }
  }
  const float mean_d = WarpSum(sum_d) / size;
  const float mean_dn = WarpSum(sum_dn) / size;
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    const Floats<kPack> dy = LoadFloats<kPack>(dy_row + j);
    const Floats<kPack> x = LoadFloats<kPack>(x_row + j);
    const Floats<kPack> gamma = LoadFloats<kPack>(arrays.gamma + j);
    Floats<kPack> dx;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float n = (x[i] - mean) * rstd;
      dx[i] = (dy[i] * gamma[i] - (mean_d + n * mean_dn)) * rstd;
    }
    StoreFloats(dx, arrays.dx + row * shape.columns + j);
  }
}

class LayerNormGrad : public Kernel {
 public:
  explicit LayerNormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype), x_(AsMatrix(spec.call.inputs[1].shape)) {}

  int64_t workspace_bytes() const override { return ColumnSumWorkspace(x_, 2); }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      constexpr int kPack = kPackOf<T>;
      const LayerNormGradArrays<T> arrays = {arguments.input<T>(0),     arguments.input<T>(1),
                                             arguments.input<T>(2),     arguments.input<float>(3),
                                             arguments.input<float>(4), arguments.output<T>(0)};
      const bool is_aligned =
          x_.columns % kPack == 0 && AreAligned(16, arrays.dy, arrays.x, arrays.gamma, arrays.dx);
      // First: dx may overwrite dy or x.
      ZG_RETURN_IF_ERROR(SumColumns<kPack>(
          ParameterGradientTerms<T>{arrays, x_.columns}, x_, is_aligned, arguments.workspace,
          ColumnSumOutputs<T, 2>{{arguments.output<T>(1), arguments.output<T>(2)}},
          arguments.stream));
      return Launch(is_aligned ? LayerNormGradKernel<kPack, T> : LayerNormGradKernel<1, T>,
                    WarpPerRow(x_.rows), arguments.stream, arrays, x_);
    });
  }

 private:
  const DType dtype_;
  const MatrixShape x_;
};

}  // namespace

void RegisterLayerNormKernels(KernelRegistry& registry) {
  registry.Register("layer_norm", MakeKernel<LayerNorm>);
  registry.Register("layer_norm_grad", MakeKernel<LayerNormGrad>);
}

}  // namespace zg::cuda
