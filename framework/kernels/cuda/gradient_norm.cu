#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "framework/kernels/cuda/exact_blocks.cuh"
#include "framework/kernels/cuda/exact_sums.h"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/math/clip_factor.h"

namespace zg::cuda {
namespace {

constexpr int kTermElements = kSquareSumTermElements;

// Elements [begin, begin + 16), with zeros after the end.
template <int kPack, typename T>
__device__ inline Floats<kTermElements> LoadTerm(const T* g, int64_t begin, int64_t num_elements) {
  Floats<kTermElements> values;
  if (kPack > 1 && begin + kTermElements <= num_elements) {
#pragma unroll
    for (int i = 0; i < kTermElements; i += kPack) {
      const Floats<kPack> pack = LoadFloats<kPack>(g + begin + i);
#pragma unroll
      for (int j = 0; j < kPack; ++j) values[i + j] = pack[j];
    }
  } else {
#pragma unroll
    for (int i = 0; i < kTermElements; ++i) {
      values[i] = begin + i < num_elements ? Widen(g[begin + i]) : 0.0f;
    }
  }
  return values;
}

// words[block][word] of the block's terms. They are integers, so their order does not matter.
template <int kPack, typename T>
__global__ void SquareSumKernel(const T* g, int64_t num_elements, int64_t* words) {
  ExactSum sum;
  const int64_t num_terms = (num_elements + kTermElements - 1) / kTermElements;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t term = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; term < num_terms;
       term += stride) {
    sum.Add(SumOfSquares(LoadTerm<kPack>(g, term * kTermElements, num_elements)));
  }
  WriteBlockSum(
      sum, [&](int word, int64_t total) { words[blockIdx.x * kExactSumWords + word] = total; });
}

__global__ void AddBlocksKernel(const int64_t* words, int64_t num_blocks, int64_t* total) {
  const int word = static_cast<int>(threadIdx.x);
  if (word >= kExactSumWords) return;
  int64_t sum = 0;
  for (int64_t block = 0; block < num_blocks; ++block) sum += words[block * kExactSumWords + word];
  total[word] = sum;
}

class SquareSum : public Kernel {
 public:
  explicit SquareSum(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        num_elements_(spec.call.inputs[0].shape.num_elements()),
        num_blocks_(
            std::clamp<int64_t>(CeilDivide(num_elements_, kTermElements * kThreads), 1, 1024)) {}

  int64_t workspace_bytes() const override {
    return num_blocks_ * kExactSumWords * static_cast<int64_t>(sizeof(int64_t));
  }

  Status Run(const KernelArguments& arguments) override {
    int64_t* const words = static_cast<int64_t*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const g = arguments.input<T>(0);
      return Launch(AreAligned(16, g) ? SquareSumKernel<kPackOf<T>, T> : SquareSumKernel<1, T>,
                    Threads(num_blocks_ * kThreads), arguments.stream, g, num_elements_, words);
    }));
    return Launch(AddBlocksKernel, {1, kWarp}, arguments.stream, words, num_blocks_,
                  arguments.output<int64_t>(0));
  }

 private:
  const DType dtype_;
  const int64_t num_elements_;
  const int64_t num_blocks_;
};

class AddSquareSums : public Kernel {
 public:
  explicit AddSquareSums(const KernelSpec& spec)
      : num_inputs_(static_cast<int>(spec.call.inputs.size())) {}

  Status Run(const KernelArguments& arguments) override {
    return CombineExactSums(arguments, num_inputs_, arguments.output<int64_t>(0));
  }

 private:
  const int num_inputs_;
};

// `weight_in` may be null: 1.
__global__ void UpdateControlKernel(const int64_t* words, const float* weight_in, double max_norm,
                                    const StepContext* step, float* control, float* norm_out) {
  ExactSum sum;
  sum.AddWords(words);
  const double weight = weight_in == nullptr ? 1.0 : *weight_in;
  const double norm = std::sqrt(sum.Value()) / weight;
  control[0] = static_cast<float>(ClipFactor(norm, max_norm) / weight);
  control[1] = static_cast<float>(step->step);
  *norm_out = static_cast<float>(norm);
}

class UpdateControl : public Kernel {
 public:
  explicit UpdateControl(const KernelSpec& spec)
      : max_norm_(spec.call.attributes.Float("max_norm")),
        is_weighted_(spec.call.attributes.Bool("weighted")),
        num_sums_(static_cast<int>(spec.call.inputs.size()) - (is_weighted_ ? 1 : 0)) {}

  int64_t workspace_bytes() const override {
    return kExactSumWords * static_cast<int64_t>(sizeof(int64_t));
  }

  Status Run(const KernelArguments& arguments) override {
    int64_t* const words = static_cast<int64_t*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(CombineExactSums(arguments, num_sums_, words));
    const float* const weight = is_weighted_ ? arguments.input<float>(num_sums_) : nullptr;
    return Launch(UpdateControlKernel, {1, 1}, arguments.stream, words, weight, max_norm_,
                  arguments.device_step, arguments.output<float>(0), arguments.output<float>(1));
  }

 private:
  const double max_norm_;
  const bool is_weighted_;
  const int num_sums_;
};

constexpr int kMaxScalars = 64;

struct GuardedControlArrays {
  const int64_t* words;
  const float* scalars[kMaxScalars];
  int num_scalars;
  bool is_weighted;  // by the first scalar
  const float* state;
  float* control;
  float* norm;
  float* next_state;
};

__global__ void GuardedUpdateControlKernel(GuardedControlArrays arrays, double max_norm,
                                           int64_t max_skipped, FaultSink faults) {
  ExactSum sum;
  sum.AddWords(arrays.words);
  const double weight = arrays.is_weighted ? *arrays.scalars[0] : 1.0;
  const double norm = std::sqrt(sum.Value()) / weight;
  bool is_finite = std::isfinite(norm);
  for (int i = 0; i < arrays.num_scalars; ++i) {
    is_finite = is_finite && std::isfinite(*arrays.scalars[i]);
  }
  // Small integers, exact in f32.
  float updates = arrays.state[0];
  float skipped = arrays.state[1];
  arrays.control[0] = is_finite ? static_cast<float>(ClipFactor(norm, max_norm) / weight) : 0.0f;
  arrays.control[1] = updates + 1;
  if (is_finite) {
    updates += 1;
    skipped = 0;
  } else {
    skipped += 1;
    if (skipped > static_cast<float>(max_skipped)) {
      faults.Record(static_cast<int64_t>(skipped), max_skipped);
    }
  }
  *arrays.norm = static_cast<float>(norm);
  arrays.next_state[0] = updates;
  arrays.next_state[1] = skipped;
}

class GuardedUpdateControl : public Kernel {
 public:
  explicit GuardedUpdateControl(const KernelSpec& spec)
      : max_norm_(spec.call.attributes.Float("max_norm")),
        max_skipped_(spec.call.attributes.Int("max_skipped")),
        is_weighted_(spec.call.attributes.Bool("weighted")),
        num_inputs_(static_cast<int>(spec.call.inputs.size())) {
    for (const TensorType& input : spec.call.inputs) num_sums_ += input.dtype == DType::kI64;
  }

  int64_t workspace_bytes() const override {
    return kExactSumWords * static_cast<int64_t>(sizeof(int64_t));
  }

  Status Run(const KernelArguments& arguments) override {
    int64_t* const words = static_cast<int64_t*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(CombineExactSums(arguments, num_sums_, words));
    GuardedControlArrays arrays = {};
    arrays.words = words;
    arrays.num_scalars = num_inputs_ - 1 - num_sums_;
    arrays.is_weighted = is_weighted_;
    for (int i = 0; i < arrays.num_scalars; ++i) {
      arrays.scalars[i] = arguments.input<float>(num_sums_ + i);
    }
    arrays.state = arguments.input<float>(num_inputs_ - 1);
    arrays.control = arguments.output<float>(0);
    arrays.norm = arguments.output<float>(1);
    arrays.next_state = arguments.output<float>(2);
    return Launch(GuardedUpdateControlKernel, {1, 1}, arguments.stream, arrays, max_norm_,
                  max_skipped_, FaultSinkOf(arguments));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return fmt::format(
        "the loss or a gradient was not finite in {} steps in a row, whose updates were left out\n"
        "  hint: lower the learning rate or look at the data; `detect_anomaly` names the first "
        "node",
        fault.got);
  }

 private:
  const double max_norm_;
  const int64_t max_skipped_;
  const bool is_weighted_;
  const int num_inputs_;
  int num_sums_ = 0;
};

StatusOr<std::unique_ptr<Kernel>> MakeGuardedUpdateControl(const KernelSpec& spec) {
  int num_scalars = -1;  // -1: there is no state
  for (const TensorType& input : spec.call.inputs) num_scalars += input.dtype != DType::kI64;
  if (num_scalars > kMaxScalars) {
    return InvalidArgument("guarded_update_control: {} scalars, the CUDA kernel takes up to {}",
                           num_scalars, kMaxScalars);
  }
  return MakeKernel<GuardedUpdateControl>(spec);
}

}  // namespace

void RegisterGradientNormKernels(KernelRegistry& registry) {
  registry.Register("square_sum", MakeKernel<SquareSum>);
  registry.Register("add_square_sums", MakeKernel<AddSquareSums>);
  registry.Register("update_control", MakeKernel<UpdateControl>);
  registry.Register("guarded_update_control", MakeGuardedUpdateControl);
}

}  // namespace zg::cuda
