#include <algorithm>
#include <string>

#include "framework/kernels/cuda/class_rows.cuh"
#include "framework/kernels/cuda/shared_memory.cuh"
#include "framework/kernels/parted_dim.h"

namespace zg::cuda {
namespace {

// The number of blocks that share a sum over so many elements.
int64_t SumBlocks(int64_t num_elements) {
  return std::clamp<int64_t>(CeilDivide(num_elements, 8 * kThreads), 1, 1024);
}

// sums[block] = sum of (prediction - target)^2 over the block's elements.
template <typename Prediction, typename Target>
__global__ void SquaredErrorKernel(const Prediction* prediction, const Target* target,
                                   int64_t num_elements, double* sums) {
  double sum = 0.0;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < num_elements;
       i += stride) {
    const float difference = Widen(prediction[i]) - Widen(target[i]);
    sum += static_cast<double>(difference * difference);
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Calls f with zeros of both types.
template <typename F>
Status WithFloatTypes(DType prediction, DType target, const F& f) {
  return WithFloatType(prediction, [&](auto p) {
    if (target == DType::kF32) return f(p, float());
    return f(p, p);  // a 16-bit target has the prediction's type
  });
}

// sum (prediction - target)^2 / divisor.
class MseLoss : public Kernel {
 public:
  explicit MseLoss(const KernelSpec& spec)
      : prediction_dtype_(spec.call.inputs[0].dtype),
        target_dtype_(spec.call.inputs[1].dtype),
        divisor_(spec.call.attributes.Float("divisor")),
        num_elements_(spec.call.inputs[0].shape.num_elements()) {}

  int64_t workspace_bytes() const override {
    return SumBlocks(num_elements_) * static_cast<int64_t>(sizeof(double));
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t num_blocks = SumBlocks(num_elements_);
    double* const sums = static_cast<double*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(WithFloatTypes(prediction_dtype_, target_dtype_, [&](auto p, auto t) {
      using Prediction = decltype(p);
      using Target = decltype(t);
      return Launch(SquaredErrorKernel<Prediction, Target>, Threads(num_blocks * kThreads),
                    arguments.stream, arguments.input<Prediction>(0), arguments.input<Target>(1),
                    num_elements_, sums);
    }));
    return Launch(FinishLossKernel, {1, kThreads}, arguments.stream, sums, num_blocks, divisor_,
                  arguments.output<float>(0));
  }

 private:
  const DType prediction_dtype_;
  const DType target_dtype_;
  const double divisor_;
  const int64_t num_elements_;
};

// dprediction = (prediction - target) * 2 dloss / divisor. The output may be either of them.
template <typename Prediction, typename Target>
struct MseGradBody {
  const float* dloss;
  const Prediction* prediction;
  const Target* target;
  Prediction* out;
  double divisor;

  using Prepared = float;
  __device__ float Prepare() const {
    return static_cast<float>(2.0 * static_cast<double>(*dloss) / divisor);
  }

  template <int kCount>
  __device__ void Run(int64_t begin, float scale) const {
    Floats<kCount> values = LoadFloats<kCount>(prediction + begin);
    const Floats<kCount> targets = LoadFloats<kCount>(target + begin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = (values[i] - targets[i]) * scale;
    StoreFloats(values, out + begin);
  }
};

class MseLossGrad : public Kernel {
 public:
  explicit MseLossGrad(const KernelSpec& spec)
      : prediction_dtype_(spec.call.inputs[1].dtype),
        target_dtype_(spec.call.inputs[2].dtype),
        divisor_(spec.call.attributes.Float("divisor")),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatTypes(prediction_dtype_, target_dtype_, [&](auto p, auto t) {
      using Prediction = decltype(p);
      using Target = decltype(t);
      const MseGradBody<Prediction, Target> body = {
          arguments.input<float>(0), arguments.input<Prediction>(1), arguments.input<Target>(2),
          arguments.output<Prediction>(0), divisor_};
      return RunPreparedPacks<kPackOf<Prediction>>(
          body, AreAligned(16, body.prediction, body.target, body.out), num_elements_,
          arguments.stream);
    });
  }

 private:
  const DType prediction_dtype_;
  const DType target_dtype_;
  const double divisor_;
  const int64_t num_elements_;
};

template <typename T>
struct CrossEntropyArrays {
  const T* logits;
  const int64_t* targets;
  float* log_sum_exp;
  double* losses;  // by row
};

// A block for each row, which is read once.
template <typename T>
__global__ void SoftmaxCrossEntropyKernel(CrossEntropyArrays<T> arrays, int64_t columns,
                                          FaultSink faults) {
  __shared__ float of_warps[2 * kThreads / kWarp];
  const int64_t row = blockIdx.x;
  const T* const logits = arrays.logits + row * columns;
  const MaximumAndSum row_sums = SumRow(logits, columns, of_warps);
  if (threadIdx.x != 0) return;
  const float log_sum_exp = row_sums.maximum + Log(row_sums.sum);
  const int64_t target = FindTarget(arrays.targets[row], {columns}, faults);
  arrays.log_sum_exp[row] = log_sum_exp;
  arrays.losses[row] = target < 0 ? 0.0 : static_cast<double>(log_sum_exp) - Widen(logits[target]);
}

// loss = sum over rows of (log_sum_exp - logits[target]) / divisor.
class SoftmaxCrossEntropy : public Kernel {
 public:
  explicit SoftmaxCrossEntropy(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        logits_(AsMatrix(spec.call.inputs[0].shape)),
        divisor_(spec.call.attributes.Float("divisor")) {}

  int64_t workspace_bytes() const override {
    return logits_.rows * static_cast<int64_t>(sizeof(double));
  }

  Status Run(const KernelArguments& arguments) override {
    double* const losses = static_cast<double*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const CrossEntropyArrays<T> arrays = {arguments.input<T>(0), arguments.input<int64_t>(1),
                                            arguments.output<float>(1), losses};
      return Launch(SoftmaxCrossEntropyKernel<T>, Threads(logits_.rows * kThreads),
                    arguments.stream, arrays, logits_.columns, FaultSinkOf(arguments));
    }));
    return Launch(FinishLossKernel, {1, kThreads}, arguments.stream, losses, logits_.rows, divisor_,
                  arguments.output<float>(0));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return TargetOutOfRange("softmax_cross_entropy", fault);
  }

 private:
  const DType dtype_;
  const MatrixShape logits_;
  const double divisor_;
};

template <typename T>
struct CrossEntropyGradArrays {
  const float* dloss;
  const T* logits;
  const int64_t* targets;
  const float* log_sum_exp;
  T* dlogits;
};

// (softmax(x) - onehot(target)) dloss / divisor, a block for each row. `dlogits` may be `logits`.
template <typename T>
__global__ void SoftmaxCrossEntropyGradKernel(CrossEntropyGradArrays<T> arrays, PartedDim classes,
                                              double divisor, FaultSink faults) {
  __shared__ float shared_scale;
  const int64_t row = blockIdx.x;
  const int64_t columns = classes.size;
  const T* const logits = arrays.logits + row * columns;
  T* const out = arrays.dlogits + row * columns;
  const int64_t target = FindTarget(arrays.targets[row], classes, faults);
  if (threadIdx.x == 0) {
    shared_scale = static_cast<float>(static_cast<double>(*arrays.dloss) / divisor);
  }
  __syncthreads();
  WriteSoftmaxMinusOneHot(logits, out, columns, AreAlike(logits, out), arrays.log_sum_exp[row],
                          target, shared_scale);
}

class SoftmaxCrossEntropyGrad : public Kernel {
 public:
  explicit SoftmaxCrossEntropyGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype),
        logits_(AsMatrix(spec.call.inputs[1].shape)),
        classes_(PartedDim::Of(spec.call, 4, logits_.columns)),
        divisor_(spec.call.attributes.Float("divisor")) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const CrossEntropyGradArrays<T> arrays = {arguments.input<float>(0), arguments.input<T>(1),
                                                arguments.input<int64_t>(2),
                                                arguments.input<float>(3), arguments.output<T>(0)};
      return Launch(SoftmaxCrossEntropyGradKernel<T>, Threads(logits_.rows * kThreads),
                    arguments.stream, arrays, classes_.At(arguments, 4), divisor_,
                    FaultSinkOf(arguments));
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return TargetOutOfRange("softmax_cross_entropy_grad", fault);
  }

 private:
  const DType dtype_;
  const MatrixShape logits_;
  const PartedDim classes_;
  const double divisor_;
};

// ---- Both at once

template <typename T>
struct CrossEntropyWithGradArrays {
  const float* dloss;
  const T* logits;
  const int64_t* targets;
  T* dlogits;
  double* losses;  // by row
};

// A row is kept in shared memory, so that the device's memory is read once, if it fits the smallest
// multiprocessor, which has 99 KB for a block; one with 228 KB then has two. GPT-2's rows in 16 bits, of
// 50304 elements, do; longer ones are read twice. Where so few blocks fit, they are as large as can be:
// 2048 threads have enough loads on their way.
constexpr int kLongRowThreads = 1024;
constexpr int64_t kLongRowBytes = 16 << 10;
constexpr int64_t kMostKeptBytes = (99 << 10) - 512;  // and what the kernel has besides

// Likewise, a block for each row. `dlogits` may be `logits`.
template <int kBlock, bool kKeeps, typename T>
__global__ void __launch_bounds__(kBlock, kBlock > kThreads ? 2 : 1)
    SoftmaxCrossEntropyWithGradKernel(CrossEntropyWithGradArrays<T> arrays, int64_t columns,
                                      double divisor, FaultSink faults) {
  __shared__ float of_warps[2 * kBlock / kWarp];
  __shared__ float shared_scale;
  const int64_t row = blockIdx.x;
  const T* const logits = arrays.logits + row * columns;
  T* const out = arrays.dlogits + row * columns;
  // At the same distance from a boundary as the row.
  T* const kept = reinterpret_cast<T*>(DynamicSharedMemory()) +
                  reinterpret_cast<uintptr_t>(logits) % 16 / sizeof(T);
  const MaximumAndSum sums =
      SumRow<kBlock>(logits, columns, of_warps, [&](int64_t begin, const auto& x) {
        if constexpr (kKeeps) {
          if constexpr (sizeof(x) == kPackOf<T> * sizeof(float)) {
            *reinterpret_cast<uint4*>(kept + begin) = PackWords<T>(x, 0);
          } else {
            kept[begin] = Round<T>(x[0]);
          }
        }
      });
  const float log_sum_exp = sums.maximum + Log(sums.sum);
  const int64_t target = FindTarget(arrays.targets[row], {columns}, faults);
  if (threadIdx.x == 0) {
    arrays.losses[row] =
        target < 0 ? 0.0 : static_cast<double>(log_sum_exp) - Widen(logits[target]);
    shared_scale = static_cast<float>(static_cast<double>(*arrays.dloss) / divisor);
  }
  __syncthreads();  // before the logits are overwritten
  WriteSoftmaxMinusOneHot<kBlock>(kKeeps ? kept : logits, out, columns, AreAlike(logits, out),
                                  log_sum_exp, target, shared_scale);
}

class SoftmaxCrossEntropyWithGrad : public Kernel {
 public:
  explicit SoftmaxCrossEntropyWithGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[1].dtype),
        logits_(AsMatrix(spec.outputs[1].shape)),
        divisor_(spec.call.attributes.Float("divisor")) {}

  int64_t workspace_bytes() const override {
    return logits_.rows * static_cast<int64_t>(sizeof(double));
  }

  Status Run(const KernelArguments& arguments) override {
    double* const losses = static_cast<double*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const CrossEntropyWithGradArrays<T> arrays = {
          arguments.input<float>(0), arguments.input<T>(1), arguments.input<int64_t>(2),
          arguments.output<T>(1), losses};
      const int64_t row_bytes = logits_.columns * static_cast<int64_t>(sizeof(T));
      const int64_t kept_bytes = row_bytes + 16;  // wherever in 16 bytes the row begins
      if (kept_bytes > kMostKeptBytes) {
        return RunOf<kLongRowThreads, false>(arrays, 0, arguments);
      }
      if (row_bytes < kLongRowBytes) return RunOf<kThreads, true>(arrays, kept_bytes, arguments);
      return RunOf<kLongRowThreads, true>(arrays, kept_bytes, arguments);
    }));
    return Launch(FinishLossKernel, {1, kThreads}, arguments.stream, losses, logits_.rows, divisor_,
                  arguments.output<float>(0));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return TargetOutOfRange("softmax_cross_entropy", fault);
  }

 private:
  template <int kBlock, bool kKeeps, typename T>
  Status RunOf(const CrossEntropyWithGradArrays<T>& arrays, int64_t kept_bytes,
               const KernelArguments& arguments) {
    const auto kernel = SoftmaxCrossEntropyWithGradKernel<kBlock, kKeeps, T>;
    if (kKeeps) {
      ZG_RETURN_IF_ERROR(
          CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(kMostKeptBytes)),
                     "a row of logits needs more shared memory than the device has"));
    }
    LaunchShape launch;
    launch.grid = dim3(static_cast<unsigned>(logits_.rows));
    launch.block = dim3(kBlock);
    launch.shared_bytes = kept_bytes;
    return Launch(kernel, launch, arguments.stream, arrays, logits_.columns, divisor_,
                  FaultSinkOf(arguments));
  }

  const DType dtype_;
  const MatrixShape logits_;
  const double divisor_;
};

}  // namespace

void RegisterLossesKernels(KernelRegistry& registry) {
  registry.Register("mse_loss", MakeKernel<MseLoss>);
  registry.Register("mse_loss_grad", MakeKernel<MseLossGrad>);
  registry.Register("softmax_cross_entropy", MakeKernel<SoftmaxCrossEntropy>);
  registry.Register("softmax_cross_entropy_grad", MakeKernel<SoftmaxCrossEntropyGrad>);
  registry.Register("softmax_cross_entropy_with_grad", MakeKernel<SoftmaxCrossEntropyWithGrad>);
}

}  // namespace zg::cuda
