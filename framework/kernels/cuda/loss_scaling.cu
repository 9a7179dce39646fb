#include <cmath>
#include <string>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cuda/exact_sums.h"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/math/clip_factor.h"
#include "framework/kernels/math/loss_scaler.h"

namespace zg::cuda {
namespace {

__global__ void LossSeedKernel(double value, int initial_exponent, const float* state,
                               float* seed) {
  const LossScaler scaler(initial_exponent, state);
  *seed = static_cast<float>(std::ldexp(value, scaler.exponent));
}

class LossSeed : public Kernel {
 public:
  explicit LossSeed(const KernelSpec& spec)
      : value_(spec.call.attributes.Float("value")),
        initial_exponent_(static_cast<int>(spec.call.attributes.Int("initial_exponent"))) {}

  Status Run(const KernelArguments& arguments) override {
    return Launch(LossSeedKernel, {1, 1}, arguments.stream, value_, initial_exponent_,
                  arguments.input<float>(0), arguments.output<float>(0));
  }

 private:
  const double value_;
  const int initial_exponent_;
};

struct ScalingOptions {
  double max_norm;
  int64_t growth_interval;
  int64_t max_skipped;
  int initial_exponent;
};

struct ScalingArrays {
  const int64_t* words;
  const float* weight;  // null: 1
  const float* state;
  float* control;
  float* norm;
  float* next_state;
};

__global__ void ScaledUpdateControlKernel(ScalingOptions options, ScalingArrays arrays,
                                          FaultSink faults) {
  ExactSum sum;
  sum.AddWords(arrays.words);
  LossScaler scaler(options.initial_exponent, arrays.state);
  const double weight = arrays.weight == nullptr ? 1.0 : *arrays.weight;
  const double norm = std::ldexp(std::sqrt(sum.Value()), -scaler.exponent) / weight;
  arrays.control[0] = 0.0f;
  arrays.control[1] = static_cast<float>(scaler.updates + 1);
  if (std::isfinite(norm)) {
    arrays.control[0] = static_cast<float>(
        std::ldexp(ClipFactor(norm, options.max_norm) / weight, -scaler.exponent));
    ++scaler.updates;
    scaler.skipped = 0;
    if (++scaler.steps_unchanged == options.growth_interval) {
      ++scaler.exponent;
      scaler.steps_unchanged = 0;
    }
  } else {
    --scaler.exponent;
    scaler.steps_unchanged = 0;
    if (++scaler.skipped > options.max_skipped) {
      faults.Record(scaler.skipped, scaler.exponent + 1);
    }
  }
  *arrays.norm = static_cast<float>(norm);
  scaler.Store(arrays.next_state);
}

class ScaledUpdateControl : public Kernel {
 public:
  explicit ScaledUpdateControl(const KernelSpec& spec)
      : options_{spec.call.attributes.Float("max_norm"),
                 spec.call.attributes.Int("growth_interval"),
                 spec.call.attributes.Int("max_skipped"),
                 static_cast<int>(spec.call.attributes.Int("initial_exponent"))},
        is_weighted_(spec.call.attributes.Bool("weighted")),
        num_inputs_(static_cast<int>(spec.call.inputs.size())),
        num_sums_(num_inputs_ - (is_weighted_ ? 2 : 1)) {}

  int64_t workspace_bytes() const override {
    return kExactSumWords * static_cast<int64_t>(sizeof(int64_t));
  }

  Status Run(const KernelArguments& arguments) override {
    int64_t* const words = static_cast<int64_t*>(arguments.workspace);
    ZG_RETURN_IF_ERROR(CombineExactSums(arguments, num_sums_, words));
    const ScalingArrays arrays = {words,
                                  is_weighted_ ? arguments.input<float>(num_sums_) : nullptr,
                                  arguments.input<float>(num_inputs_ - 1),
                                  arguments.output<float>(0),
                                  arguments.output<float>(1),
                                  arguments.output<float>(2)};
    return Launch(ScaledUpdateControlKernel, {1, 1}, arguments.stream, options_, arrays,
                  FaultSinkOf(arguments));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return fmt::format(
        "the gradients were not finite in {} steps in a row, down to a loss scale of 2^{}\n"
        "  hint: lower the learning rate, clip gradients, or compute in bf16 or f32",
        fault.got, fault.limit);
  }

 private:
  const ScalingOptions options_;
  const bool is_weighted_;
  const int num_inputs_;
  const int num_sums_;
};

}  // namespace

void RegisterLossScalingKernels(KernelRegistry& registry) {
  registry.Register("loss_seed", MakeKernel<LossSeed>);
  registry.Register("scaled_update_control", MakeKernel<ScaledUpdateControl>);
}

}  // namespace zg::cuda
