#include <cmath>
#include <optional>
#include <string>

#include "framework/kernels/adam_attributes.h"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/optimizer_math.h"
#include "framework/ops/parameter_copy.h"

namespace zg::cuda {
namespace {

// Every update is one pass over memory. Outputs may be the inputs. If the control's factor is 0,
// everything stays unchanged.

// The arrays of p, g and the states; outputs are the new p and states, and optionally a copy of p
// in 16 bits.
template <int kStates>
struct UpdateArrays {
  const float* p;
  const float* states[kStates + 1];  // one more than needed, because arrays cannot be empty
  float* p_out;
  float* states_out[kStates + 1];
  BFloat16* bf16_copy;  // null: none
  Float16* f16_copy;    // likewise
};

// The source of the update's number and of the factor on the gradient.
struct ControlSource {
  const StepContext* step;
  const float* control;  // {factor, number of the update}; null: 1 and the step's number

  __device__ float factor() const { return control == nullptr ? 1.0f : control[0]; }
  __device__ double number() const {
    return control == nullptr ? static_cast<double>(step->step) : static_cast<double>(control[1]);
  }
};

// `Rule` has Factors (without constructors, with the member `gradient`), MakeFactors(control) and
// Step(p, g, states, factors), which updates p and states in place.
template <typename Rule, typename T>
struct UpdateBody {
  static constexpr int kStates = Rule::kStates;
  UpdateArrays<kStates> arrays;
  const T* g;
  ControlSource control;
  Rule rule;
  FaultSink faults;

  using Prepared = typename Rule::Factors;
  __device__ Prepared Prepare() const { return rule.MakeFactors(control); }

  template <int kCount>
  __device__ void Run(int64_t begin, const Prepared& factors) const {
    Floats<kCount> p = LoadFloats<kCount>(arrays.p + begin);
    const Floats<kCount> gradient = LoadFloats<kCount>(g + begin);
    Floats<kCount> states[kStates + 1];
#pragma unroll
    for (int s = 0; s < kStates; ++s) states[s] = LoadFloats<kCount>(arrays.states[s] + begin);
    bool is_finite = true;
    if (factors.gradient != 0.0f) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        float element[kStates + 1];
#pragma unroll
        for (int s = 0; s < kStates; ++s) element[s] = states[s][i];
        rule.Step(&p[i], gradient[i], element, factors);
        is_finite = is_finite && std::isfinite(p[i]);
#pragma unroll
        for (int s = 0; s < kStates; ++s) states[s][i] = element[s];
      }
    }
    if (!is_finite && control.step->stop_on_non_finite) faults.Record(0, 0);
    StoreFloats(p, arrays.p_out + begin);
    if (arrays.bf16_copy != nullptr) StoreFloats(p, arrays.bf16_copy + begin);
    if (arrays.f16_copy != nullptr) StoreFloats(p, arrays.f16_copy + begin);
#pragma unroll
    for (int s = 0; s < kStates; ++s) StoreFloats(states[s], arrays.states_out[s] + begin);
  }
};

struct SgdRule {
  static constexpr int kStates = 0;
  using Factors = SgdFactors;
  double lr;
  float weight_decay;

  explicit SgdRule(const ir::Attributes& attributes)
      : lr(attributes.Float("lr")),
        weight_decay(static_cast<float>(attributes.Float("weight_decay"))) {}
  __device__ Factors MakeFactors(const ControlSource& control) const {
    return {control.factor(), static_cast<float>(lr * control.step->lr_factor), weight_decay, 0.0f};
  }
  __device__ void Step(float* p, float g, float*, const Factors& factors) const {
    *p = SgdStep(*p, g, factors);
  }
};

struct SgdMomentumRule {
  static constexpr int kStates = 1;
  using Factors = SgdFactors;
  double lr;
  float momentum;
  float weight_decay;
  bool nesterov;

  explicit SgdMomentumRule(const ir::Attributes& attributes)
      : lr(attributes.Float("lr")),
        momentum(static_cast<float>(attributes.Float("momentum"))),
        weight_decay(static_cast<float>(attributes.Float("weight_decay"))),
        nesterov(attributes.Bool("nesterov")) {}
  __device__ Factors MakeFactors(const ControlSource& control) const {
    return {control.factor(), static_cast<float>(lr * control.step->lr_factor), weight_decay,
            momentum};
  }
  __device__ void Step(float* p, float g, float* states, const Factors& factors) const {
    const SgdResult result = nesterov ? SgdNesterovStep(*p, g, states[0], factors)
                                      : SgdMomentumStep(*p, g, states[0], factors);
    *p = result.p;
    states[0] = result.m;
  }
};

struct AdamRule {
  static constexpr int kStates = 2;
  using Factors = AdamFactors;
  AdamAttributes attributes;
  double after_updates;

  explicit AdamRule(const ir::Attributes& a)
      : attributes(AdamAttributesOf(a)),
        after_updates(static_cast<double>(a.Int("after_updates"))) {}
  __device__ Factors MakeFactors(const ControlSource& control) const {
    return MakeAdamFactors(attributes, control.step->lr_factor, control.factor(),
                           control.number() - after_updates);
  }
  __device__ void Step(float* p, float g, float* states, const Factors& factors) const {
    const AdamResult result = AdamStep({*p, g, states[0], states[1]}, factors);
    *p = result.p;
    states[0] = result.m;
    states[1] = result.v;
  }
};

template <typename Rule>
class Update : public Kernel {
 public:
  explicit Update(const KernelSpec& spec)
      : gradient_dtype_(spec.call.inputs[1].dtype),
        copy_(CopyOf(spec.call.attributes)),
        num_elements_(spec.outputs[0].shape.num_elements()),
        has_control_(spec.call.inputs.size() == kStates + 3),
        rule_(spec.call.attributes) {}

  Status Run(const KernelArguments& arguments) override {
    UpdateArrays<kStates> arrays = {};
    arrays.p = arguments.input<float>(0);
    arrays.p_out = arguments.output<float>(0);
    bool is_aligned = AreAligned(16, arrays.p, arrays.p_out, arguments.input<char>(1));
    for (int s = 0; s < kStates; ++s) {
      arrays.states[s] = arguments.input<float>(s + 2);
      arrays.states_out[s] = arguments.output<float>(s + 1);
      is_aligned = is_aligned && AreAligned(16, arrays.states[s], arrays.states_out[s]);
    }
    if (copy_) {
      void* const copy = arguments.outputs[kStates + 1];
      is_aligned = is_aligned && AreAligned(16, static_cast<const char*>(copy));
      if (*copy_ == DType::kBF16) arrays.bf16_copy = static_cast<BFloat16*>(copy);
      if (*copy_ == DType::kF16) arrays.f16_copy = static_cast<Float16*>(copy);
    }
    const ControlSource control = {arguments.device_step,
                                   has_control_ ? arguments.input<float>(kStates + 2) : nullptr};
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      using T = decltype(zero);
      const UpdateBody<Rule, T> body = {arrays, arguments.input<T>(1), control, rule_,
                                        FaultSinkOf(arguments)};
      return RunPreparedPacks<4>(body, is_aligned, num_elements_, arguments.stream);
    });
  }

  std::string FaultText(const DeviceFault&) const override {
    return "an updated parameter is not finite";
  }

 private:
  static constexpr int kStates = Rule::kStates;
  const DType gradient_dtype_;
  const std::optional<DType> copy_;
  const int64_t num_elements_;
  const bool has_control_;
  const Rule rule_;
};

}  // namespace

void RegisterOptimizerKernels(KernelRegistry& registry) {
  registry.Register("sgd_update", MakeKernel<Update<SgdRule>>);
  registry.Register("sgd_momentum_update", MakeKernel<Update<SgdMomentumRule>>);
  registry.Register("adam_update", MakeKernel<Update<AdamRule>>);
}

}  // namespace zg::cuda
