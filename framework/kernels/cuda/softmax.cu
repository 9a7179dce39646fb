#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/warp_rows.cuh"
#include "framework/kernels/math/vector_math.h"

namespace zg::cuda {
namespace {

enum class RowOp { kSoftmax, kSoftmaxGrad, kLogSoftmax, kLogSoftmaxGrad };

// A lane's elements of a row are threadIdx.x % kWarp and every kWarp-th one after it; none of them
// is written before all lanes have read theirs for the sum.
template <RowOp kOp, typename T>
__global__ void RowKernel(const T* first, const T* second, T* out, MatrixShape shape) {
  const int64_t row = RowOfWarp();
  if (row >= shape.rows) return;
  const T* const x = first + row * shape.columns;
  const T* const y = second + row * shape.columns;
  T* const result = out + row * shape.columns;
  const int64_t lane = threadIdx.x % kWarp;
  float largest = -INFINITY;
  if (kOp == RowOp::kSoftmax || kOp == RowOp::kLogSoftmax) {
    for (int64_t i = lane; i < shape.columns; i += kWarp) {
      const float value = Widen(x[i]);
      largest = largest > value ? largest : value;
    }
    largest = WarpMax(largest);
  }
  float sum = 0.0f;
  for (int64_t i = lane; i < shape.columns; i += kWarp) {
    const float value = Widen(x[i]);
    if (kOp == RowOp::kSoftmax || kOp == RowOp::kLogSoftmax) {
      sum += ExpOfNotHigh(value - largest);
    } else {
      sum += kOp == RowOp::kSoftmaxGrad ? value * Widen(y[i]) : value;
    }
  }
  sum = WarpSum(sum);
  const float factor = 1.0f / sum;
  const float log_sum = kOp == RowOp::kLogSoftmax ? Log<Fused>(sum) : 0.0f;
  for (int64_t i = lane; i < shape.columns; i += kWarp) {
    const float value = Widen(x[i]);
    float element = 0.0f;
    if (kOp == RowOp::kSoftmax) element = ExpOfNotHigh(value - largest) * factor;
    if (kOp == RowOp::kSoftmaxGrad) element = Widen(y[i]) * (value - sum);
    if (kOp == RowOp::kLogSoftmax) element = (value - largest) - log_sum;
    if (kOp == RowOp::kLogSoftmaxGrad) element = value - ExpOfNotHigh(Widen(y[i])) * sum;
    result[i] = Round<T>(element);
  }
}

template <RowOp kOp>
class Rows : public Kernel {
 public:
  explicit Rows(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        shape_(AsMatrix(spec.outputs[0].shape)),
        last_(static_cast<int>(spec.call.inputs.size()) - 1) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      return Launch(RowKernel<kOp, T>, WarpPerRow(shape_.rows), arguments.stream,
                    arguments.input<T>(0), arguments.input<T>(last_), arguments.output<T>(0),
                    shape_);
    });
  }

 private:
  const DType dtype_;
  const MatrixShape shape_;
  const int last_;
};

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  registry.Register("softmax", MakeKernel<Rows<RowOp::kSoftmax>>);
  registry.Register("softmax_grad", MakeKernel<Rows<RowOp::kSoftmaxGrad>>);
  registry.Register("log_softmax", MakeKernel<Rows<RowOp::kLogSoftmax>>);
  registry.Register("log_softmax_grad", MakeKernel<Rows<RowOp::kLogSoftmaxGrad>>);
}

}  // namespace zg::cuda
