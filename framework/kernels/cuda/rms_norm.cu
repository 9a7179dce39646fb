#include "framework/kernels/cuda/column_sum.cuh"
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

template <typename T>
struct RmsNormGradArrays {
  const T* dy;
  const T* x;
  const T* weight;
  const float* rrms;
  T* dx;
};

// With n = x rrms: dweight = sum over rows of dy n.
template <typename T>
struct WeightGradientTerms {
  static constexpr int kSums = 1;
  RmsNormGradArrays<T> arrays;
  int64_t columns;

  template <int kCount>
  __device__ void Add(int64_t row, int64_t column, Floats<kCount> (&sums)[kSums]) const {
    const int64_t at = row * columns + column;
    const Floats<kCount> dy = LoadFloats<kCount>(arrays.dy + at);
    const Floats<kCount> x = LoadFloats<kCount>(arrays.x + at);
    const float rrms = arrays.rrms[row];
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[0][i] += dy[i] * (x[i] * rrms);
  }
};

// With e = dy weight: dx = (e - n average(e n)) rrms. `dx` may be `dy` or `x`.
template <int kPack, typename T>
__global__ void RmsNormGradKernel(RmsNormGradArrays<T> arrays, MatrixShape shape) {
  const int64_t row = RowOfWarp();
  if (row >= shape.rows) return;
  const T* const dy_row = arrays.dy + row * shape.columns;
  const T* const x_row = arrays.x + row * shape.columns;
  const int64_t first = static_cast<int64_t>(threadIdx.x % kWarp) * kPack;
  const float rrms = arrays.rrms[row];
  float sum = 0.0f;
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    const Floats<kPack> dy = LoadFloats<kPack>(dy_row + j);
    const Floats<kPack> x = LoadFloats<kPack>(x_row + j);
    const Floats<kPack> weight = LoadFloats<kPack>(arrays.weight + j);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum += (dy[i] * weight[i]) * (x[i] * rrms);
  }
  const float average = WarpSum(sum) / static_cast<float>(shape.columns);
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    const Floats<kPack> dy = LoadFloats<kPack>(dy_row + j);
    const Floats<kPack> x = LoadFloats<kPack>(x_row + j);
    const Floats<kPack> weight = LoadFloats<kPack>(arrays.weight + j);
    Floats<kPack> dx;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      dx[i] = (dy[i] * weight[i] - (x[i] * rrms) * average) * rrms;
    }
    StoreFloats(dx, arrays.dx + row * shape.columns + j);
  }
}

class RmsNormGrad : public Kernel {
 public:
  explicit RmsNormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype), x_(AsMatrix(spec.call.inputs[1].shape)) {}

  int64_t workspace_bytes() const override { return ColumnSumWorkspace(x_, 1); }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      constexpr int kPack = kPackOf<T>;
      const RmsNormGradArrays<T> arrays = {arguments.input<T>(0), arguments.input<T>(1),
                                           arguments.input<T>(2), arguments.input<float>(3),
                                           arguments.output<T>(0)};
      const bool is_aligned =
          x_.columns % kPack == 0 && AreAligned(16, arrays.dy, arrays.x, arrays.weight, arrays.dx);
      // First: dx may overwrite dy or x.
      ZG_RETURN_IF_ERROR(SumColumns<kPack>(
          WeightGradientTerms<T>{arrays, x_.columns}, x_, is_aligned, arguments.workspace,
          ColumnSumOutputs<T, 1>{{arguments.output<T>(1)}}, arguments.stream));
      return Launch(is_aligned ? RmsNormGradKernel<kPack, T> : RmsNormGradKernel<1, T>,
                    WarpPerRow(x_.rows), arguments.stream, arrays, x_);
    });
  }

 private:
  const DType dtype_;
  const MatrixShape x_;
};

}  // namespace

void RegisterRmsNormKernels(KernelRegistry& registry) {
  registry.Register("rms_norm", MakeKernel<RmsNorm>);
  registry.Register("rms_norm_grad", MakeKernel<RmsNormGrad>);
}

}  // namespace zg::cuda
