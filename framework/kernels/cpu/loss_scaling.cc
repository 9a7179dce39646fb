#include <cmath>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/math/clip_factor.h"
#include "framework/kernels/math/loss_scaler.h"

namespace zg {
namespace {

class LossSeed : public Kernel {
 public:
  explicit LossSeed(const KernelSpec& spec)
      : value_(spec.call.attributes.Float("value")),
        initial_exponent_(static_cast<int>(spec.call.attributes.Int("initial_exponent"))) {}

  Status Run(const KernelArguments& arguments) override {
    const LossScaler scaler(initial_exponent_, arguments.input<float>(0));
    arguments.output<float>(0)[0] = static_cast<float>(std::ldexp(value_, scaler.exponent));
    return Status::Ok();
  }

 private:
  const double value_;
  const int initial_exponent_;
};

class ScaledUpdateControl : public Kernel {
 public:
  explicit ScaledUpdateControl(const KernelSpec& spec)
      : max_norm_(spec.call.attributes.Float("max_norm")),
        growth_interval_(spec.call.attributes.Int("growth_interval")),
        max_skipped_(spec.call.attributes.Int("max_skipped")),
        initial_exponent_(static_cast<int>(spec.call.attributes.Int("initial_exponent"))),
        is_weighted_(spec.call.attributes.Bool("weighted")),
        num_inputs_(static_cast<int>(spec.call.inputs.size())),
        num_sums_(num_inputs_ - (is_weighted_ ? 2 : 1)) {}

  Status Run(const KernelArguments& arguments) override {
    ExactSum sum;
    for (int i = 0; i < num_sums_; ++i) sum.AddWords(arguments.input<int64_t>(i));
    LossScaler scaler(initial_exponent_, arguments.input<float>(num_inputs_ - 1));
    const double weight = is_weighted_ ? arguments.input<float>(num_sums_)[0] : 1.0;
    const double norm = std::ldexp(std::sqrt(sum.Value()), -scaler.exponent) / weight;
    float* const control = arguments.output<float>(0);
    control[0] = 0.0f;
    control[1] = static_cast<float>(scaler.updates + 1);
    if (std::isfinite(norm)) {
      control[0] =
          static_cast<float>(std::ldexp(ClipFactor(norm, max_norm_) / weight, -scaler.exponent));
      ++scaler.updates;
      scaler.skipped = 0;
      if (++scaler.steps_unchanged == growth_interval_) {
        ++scaler.exponent;
        scaler.steps_unchanged = 0;
      }
    } else {
      --scaler.exponent;
      scaler.steps_unchanged = 0;
      if (++scaler.skipped > max_skipped_) return TooManySkipped(scaler);
    }
    arguments.output<float>(1)[0] = static_cast<float>(norm);
    scaler.Store(arguments.output<float>(2));
    return Status::Ok();
  }

 private:
  static Status TooManySkipped(const LossScaler& scaler) {
    return FailedPrecondition(
        "the gradients were not finite in {} steps in a row, down to a loss scale of 2^{}\n"
        "  hint: lower the learning rate, clip gradients, or compute in bf16 or f32",
        scaler.skipped, scaler.exponent + 1);
  }

  const double max_norm_;
  const int64_t growth_interval_;
  const int64_t max_skipped_;
  const int initial_exponent_;
  const bool is_weighted_;
  const int num_inputs_;
  const int num_sums_;
};

}  // namespace

void RegisterLossScalingKernels(KernelRegistry& registry) {
  registry.Register("loss_seed", MakeKernel<LossSeed>);
  registry.Register("scaled_update_control", MakeKernel<ScaledUpdateControl>);
}

}  // namespace zg
