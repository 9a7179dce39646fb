#include "framework/kernels/cuda/class_rows.cuh"
#include "framework/kernels/parted_dim.h"

namespace zg::cuda {
namespace {

constexpr int64_t kNumSums = 3;

// One block for each row and part of the classes: see framework/ops/class_parts.cc.
template <typename T>
__global__ void ClassPartSumsKernel(const T* logits, const int64_t* targets, int64_t rows,
                                    PartedDim classes, FaultSink faults, float* sums) {
  __shared__ float of_warps[2 * kThreads / kWarp];
  const int64_t part = blockIdx.x / rows;
  const int64_t row = blockIdx.x % rows;
  const int64_t begin = part * classes.PartSize();
  const MaximumAndSum row_sums =
      SumRow(logits + row * classes.size + begin, classes.PartSize(), of_warps);
  if (threadIdx.x != 0) return;
  const int64_t target = FindTarget(targets[row], classes, faults);
  const bool has_target = target >= begin && target < begin + classes.PartSize();
  float* const out = sums + blockIdx.x * kNumSums;
  out[0] = row_sums.maximum;
  out[1] = row_sums.sum;
  out[2] = has_target ? Widen(logits[row * classes.size + target]) : 0.0f;
}

class ClassPartSums : public Kernel {
 public:
  explicit ClassPartSums(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        logits_(AsMatrix(spec.call.inputs[0].shape)),
        classes_(PartedDim::Of(spec.call, 2, logits_.columns)) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      return Launch(ClassPartSumsKernel<T>, Threads(logits_.rows * classes_.own_parts * kThreads),
                    arguments.stream, arguments.input<T>(0), arguments.input<int64_t>(1),
                    logits_.rows, classes_.At(arguments, 2), FaultSinkOf(arguments),
                    arguments.output<float>(0));
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return TargetOutOfRange("class_part_sums", fault);
  }

 private:
  const DType dtype_;
  const MatrixShape logits_;
  const PartedDim classes_;
};

__global__ void CrossEntropyOfPartsKernel(const float* sums, int64_t parts, int64_t rows,
                                          float* log_sum_exp, double* losses) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float maximum = -INFINITY;
  for (int64_t part = 0; part < parts; ++part) {
    maximum = fmaxf(maximum, sums[(part * rows + row) * kNumSums]);
  }
  float sum = 0.0f;
  float target = 0.0f;
  for (int64_t part = 0; part < parts; ++part) {
    const float* const of_part = sums + (part * rows + row) * kNumSums;
    sum += of_part[1] * Exp(of_part[0] - maximum);
    target += of_part[2];
  }
  log_sum_exp[row] = maximum + Log(sum);
  losses[row] = static_cast<double>(log_sum_exp[row]) - target;
}

class CrossEntropyOfParts : public Kernel {
 public:
  explicit CrossEntropyOfParts(const KernelSpec& spec)
      : parts_(spec.call.inputs[0].shape.dim(0)),
        rows_(spec.outputs[1].shape.num_elements()),
        divisor_(spec.call.attributes.Float("divisor")) {}

  int64_t workspace_bytes() const override { return rows_ * static_cast<int64_t>(sizeof(double)); }

  Status Run(const KernelArguments& arguments) override {
    double* const losses = static_cast<double*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(Launch(CrossEntropyOfPartsKernel, Threads(rows_), arguments.stream,
                              arguments.input<float>(0), parts_, rows_, arguments.output<float>(1),
                              losses));
    return Launch(FinishLossKernel, {1, kThreads}, arguments.stream, losses, rows_, divisor_,
                  arguments.output<float>(0));
  }

 private:
  const int64_t parts_;
  const int64_t rows_;
  const double divisor_;
};

}  // namespace

void RegisterClassPartsKernels(KernelRegistry& registry) {
  registry.Register("class_part_sums", MakeKernel<ClassPartSums>);
  registry.Register("cross_entropy_of_parts", MakeKernel<CrossEntropyOfParts>);
}

}  // namespace zg::cuda
