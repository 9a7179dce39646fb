#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/square_terms.h"
#include "framework/kernels/math/clip_factor.h"

namespace zg {
namespace {

class SquareSum : public Kernel {
 public:
  explicit SquareSum(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        num_elements_(spec.call.inputs[0].shape.num_elements()),
        num_sharing_(NumSharing(spec.threads, num_elements_, kUnit, 1)) {}

  // The sums of the threads other than the first. They are exact, so they add up to the same words.
  int64_t workspace_bytes() const override { return (num_sharing_ - 1) * kBytesOfThread; }

  Status Run(const KernelArguments& arguments) override {
    int64_t* const words = arguments.output<int64_t>(0);
    const auto words_of = [&](int thread) {
      return thread == 0 ? words
                         : static_cast<int64_t*>(
                               WorkspaceOf(thread - 1, arguments.workspace, kBytesOfThread));
    };
    for (int i = 0; i < num_sharing_; ++i) std::fill_n(words_of(i), kExactSumWords, 0);
    ForEqualRanges(arguments.threads, num_sharing_, num_elements_, kUnit,
                   [&](int64_t begin, int64_t end, int thread) {
                     AddRange(arguments, begin, end, words_of(thread));
                   });
    for (int i = 1; i < num_sharing_; ++i) {
      const int64_t* const others = words_of(i);
      for (int word = 0; word < kExactSumWords; ++word) words[word] += others[word];
    }
    return Status::Ok();
  }

 private:
  static constexpr int64_t kUnit = 4096;          // elements, in 16 bits those widened at once
  static constexpr int64_t kBytesOfThread = 192;  // kExactSumWords, on cache lines of their own
  static_assert(kBytesOfThread >= kExactSumWords * sizeof(int64_t) && kBytesOfThread % 64 == 0);

  // Adds the elements [begin, end), of which a whole number of terms comes before.
  void AddRange(const KernelArguments& arguments, int64_t begin, int64_t end,
                int64_t* words) const {
    SquareTerms terms;
    if (dtype_ == DType::kF32) {
      terms.Add(arguments.input<float>(0) + begin, end - begin);
    } else {
      float widened[kUnit];
      for (; begin < end; begin += kUnit) {
        const int64_t count = std::min(kUnit, end - begin);
        ConvertFloats(dtype_, arguments.input<char>(0) + begin * SizeOf(dtype_), DType::kF32,
                      widened, count);
        terms.Add(widened, count);
      }
    }
    terms.AddTo(words);
  }

  const DType dtype_;
  const int64_t num_elements_;
  const int num_sharing_;
};

class AddSquareSums : public Kernel {
 public:
  explicit AddSquareSums(const KernelSpec& spec)
      : num_inputs_(static_cast<int>(spec.call.inputs.size())) {}

  Status Run(const KernelArguments& arguments) override {
    ExactSum sum;
    for (int i = 0; i < num_inputs_; ++i) sum.AddWords(arguments.input<int64_t>(i));
    sum.Carry();
    std::fill_n(arguments.output<int64_t>(0), kExactSumWords, 0);
    sum.AddTo(arguments.output<int64_t>(0));
    return Status::Ok();
  }

 private:
  const int num_inputs_;
};

class UpdateControl : public Kernel {
 public:
  explicit UpdateControl(const KernelSpec& spec)
      : max_norm_(spec.call.attributes.Float("max_norm")),
        is_weighted_(spec.call.attributes.Bool("weighted")),
        num_sums_(static_cast<int>(spec.call.inputs.size()) - (is_weighted_ ? 1 : 0)) {}

  Status Run(const KernelArguments& arguments) override {
    ExactSum sum;
    for (int i = 0; i < num_sums_; ++i) sum.AddWords(arguments.input<int64_t>(i));
    const double weight = is_weighted_ ? arguments.input<float>(num_sums_)[0] : 1.0;
    const double norm = std::sqrt(sum.Value()) / weight;
    arguments.output<float>(0)[0] = static_cast<float>(ClipFactor(norm, max_norm_) / weight);
    arguments.output<float>(0)[1] = static_cast<float>(arguments.step->step);
    arguments.output<float>(1)[0] = static_cast<float>(norm);
    return Status::Ok();
  }

 private:
  const double max_norm_;
  const bool is_weighted_;
  const int num_sums_;
};

class GuardedUpdateControl : public Kernel {
 public:
  explicit GuardedUpdateControl(const KernelSpec& spec)
      : max_norm_(spec.call.attributes.Float("max_norm")),
        max_skipped_(spec.call.attributes.Int("max_skipped")),
        is_weighted_(spec.call.attributes.Bool("weighted")),
        num_inputs_(static_cast<int>(spec.call.inputs.size())) {
    for (const TensorType& input : spec.call.inputs) num_sums_ += input.dtype == DType::kI64;
  }

  Status Run(const KernelArguments& arguments) override {
    ExactSum sum;
    for (int i = 0; i < num_sums_; ++i) sum.AddWords(arguments.input<int64_t>(i));
    const double weight = is_weighted_ ? arguments.input<float>(num_sums_)[0] : 1.0;
    const double norm = std::sqrt(sum.Value()) / weight;
    bool is_finite = std::isfinite(norm);
    for (int i = num_sums_; i + 1 < num_inputs_; ++i) {
      is_finite = is_finite && std::isfinite(arguments.input<float>(i)[0]);
    }
    // Small integers, exact in f32.
    float updates = arguments.input<float>(num_inputs_ - 1)[0];
    float skipped = arguments.input<float>(num_inputs_ - 1)[1];
    float* const control = arguments.output<float>(0);
    control[0] = is_finite ? static_cast<float>(ClipFactor(norm, max_norm_) / weight) : 0.0f;
    control[1] = updates + 1;
    if (is_finite) {
      updates += 1;
      skipped = 0;
    } else {
      skipped += 1;
      if (skipped > static_cast<float>(max_skipped_)) return TooManySkipped(skipped);
    }
    arguments.output<float>(1)[0] = static_cast<float>(norm);
    arguments.output<float>(2)[0] = updates;
    arguments.output<float>(2)[1] = skipped;
    return Status::Ok();
  }

 private:
  static Status TooManySkipped(float skipped) {
    return FailedPrecondition(
        "the loss or a gradient was not finite in {} steps in a row, whose updates were left out\n"
        "  hint: lower the learning rate or look at the data; `detect_anomaly` names the first "
        "node",
        skipped);
  }

  const double max_norm_;
  const int64_t max_skipped_;
  const bool is_weighted_;
  const int num_inputs_;
  int num_sums_ = 0;
};

}  // namespace

void RegisterGradientNormKernels(KernelRegistry& registry) {
  registry.Register("square_sum", MakeKernel<SquareSum>);
  registry.Register("add_square_sums", MakeKernel<AddSquareSums>);
  registry.Register("update_control", MakeKernel<UpdateControl>);
  registry.Register("guarded_update_control", MakeKernel<GuardedUpdateControl>);
}

}  // namespace zg
