#include <algorithm>
#include <cmath>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cuda/exact_sums.h"
#include "framework/kernels/cuda/families.h"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/math/clip_factor.h"

namespace zg::cuda {
namespace {

constexpr int kTermElements = 16;  // as the op says

// Elements [begin, begin + 16), zeros behind the end.
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

// Squares are exact in f64; with s[i] = g[i]^2 + g[i + 8]^2 the sum is
// ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)).
__device__ inline double SumOfSquares(const Floats<kTermElements>& g) {
  double s[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const double low = g[i];
    const double high = g[i + 8];
    s[i] = low * low + high * high;
  }
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// words[block][word] of the block's terms. Whole numbers: their order does not matter.
template <int kPack, typename T>
__global__ void SquareSumKernel(const T* g, int64_t num_elements, int64_t* words) {
  ExactSum sum;
  const int64_t num_terms = (num_elements + kTermElements - 1) / kTermElements;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t term = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; term < num_terms;
       term += stride) {
    sum.Add(SumOfSquares(LoadTerm<kPack>(g, term * kTermElements, num_elements)));
  }
  int64_t own[kExactSumWords] = {};
  sum.AddTo(own);
  for (int word = 0; word < kExactSumWords; ++word) {
    const int64_t total = BlockSum(own[word]);
    if (threadIdx.x == 0) words[blockIdx.x * kExactSumWords + word] = total;
  }
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

__global__ void UpdateControlKernel(const int64_t* words, double max_norm, const StepContext* step,
                                    float* control, float* norm_out) {
  ExactSum sum;
  sum.AddWords(words);
  const double norm = std::sqrt(sum.Value());
  control[0] = static_cast<float>(ClipFactor(norm, max_norm));
  control[1] = static_cast<float>(step->step);
  *norm_out = static_cast<float>(norm);
}

class UpdateControl : public Kernel {
 public:
  explicit UpdateControl(const KernelSpec& spec)
      : max_norm_(spec.call.attributes.Float("max_norm")),
        num_inputs_(static_cast<int>(spec.call.inputs.size())) {}

  int64_t workspace_bytes() const override {
    return kExactSumWords * static_cast<int64_t>(sizeof(int64_t));
  }

  Status Run(const KernelArguments& arguments) override {
    int64_t* const words = static_cast<int64_t*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(CombineExactSums(arguments, num_inputs_, words));
    return Launch(UpdateControlKernel, {1, 1}, arguments.stream, words, max_norm_,
                  arguments.device_step, arguments.output<float>(0), arguments.output<float>(1));
  }

 private:
  const double max_norm_;
  const int num_inputs_;
};

}  // namespace

void RegisterGradientNormKernels(KernelRegistry& registry) {
  registry.Register("square_sum", MakeKernel<SquareSum>);
  registry.Register("add_square_sums", MakeKernel<AddSquareSums>);
  registry.Register("update_control", MakeKernel<UpdateControl>);
}

}  // namespace zg::cuda
