#include <algorithm>
#include <cstdint>
#include <cstring>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/optimizer_math.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Every update is one pass over memory. Outputs may be the inputs.

template <typename Gradient>
void SgdBlock(const float* p, const Gradient* g, SgdFactors f, int64_t count, float* p_out) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      p_out[i] = SgdStep(p[i], ToF32(g[i]), f);
    }
  });
}

template <typename Gradient>
void SgdMomentumBlock(const float* p, const Gradient* g, const float* m, SgdFactors f,
                      int64_t count, float* p_out, float* m_out) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const SgdResult result = SgdMomentumStep(p[i], ToF32(g[i]), m[i], f);
      p_out[i] = result.p;
      m_out[i] = result.m;
    }
  });
}

template <typename Gradient>
void SgdNesterovBlock(const float* p, const Gradient* g, const float* m, SgdFactors f,
                      int64_t count, float* p_out, float* m_out) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const SgdResult result = SgdNesterovStep(p[i], ToF32(g[i]), m[i], f);
      p_out[i] = result.p;
      m_out[i] = result.m;
    }
  });
}

template <typename Gradient>
struct AdamArrays {
  const float* p;
  const Gradient* g;
  const float* m;
  const float* v;
  float* p_out;
  float* m_out;
  float* v_out;
};

template <typename Gradient>
void AdamBlock(const AdamArrays<Gradient>& arrays, const AdamFactors& factors, int64_t count) {
  Multiversion([=]() ZG_VERSION {
    const AdamArrays<Gradient> a = arrays;
    const AdamFactors f = factors;
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const AdamResult result = AdamStep({a.p[i], ToF32(a.g[i]), a.m[i], a.v[i]}, f);
      a.p_out[i] = result.p;
      a.m_out[i] = result.m;
      a.v_out[i] = result.v;
    }
  });
}

bool AllFinite(const float* data, int64_t count) {
  return Multiversion([=]() ZG_VERSION {
    constexpr uint32_t kExponent = 0x7f800000;
    uint32_t num_others = 0;
    for (int64_t i = 0; i < count; ++i) {
      uint32_t bits;
      std::memcpy(&bits, data + i, sizeof(bits));
      num_others += (bits & kExponent) == kExponent;
    }
    return num_others == 0;
  });
}

// What the control input says, or its absence.
struct Control {
  float factor = 1.0f;
  double step = 0;  // the number of this update
};

// What the updates share: p, g, the states, of which there are as many as outputs, and the control.
class Update : public Kernel {
 public:
  explicit Update(const KernelSpec& spec)
      : gradient_dtype_(spec.call.inputs[1].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()),
        num_outputs_(static_cast<int>(spec.outputs.size())),
        has_control_(static_cast<int>(spec.call.inputs.size()) == num_outputs_ + 2) {}

  Status Run(const KernelArguments& arguments) final {
    const Control control = ReadControl(arguments);
    if (control.factor == 0.0f) {
      KeepEverything(arguments);
    } else if (!arguments.step->stop_on_non_finite) {
      Apply(arguments, control, num_elements_);
    } else if (!ApplyByBlocks(arguments, control)) {
      return FailedPrecondition("an updated parameter is not finite");
    }
    return Status::Ok();
  }

 protected:
  // A 16-bit gradient is widened by the update itself.
  virtual void Apply(const KernelArguments& arguments, const Control& control,
                     int64_t num_elements) = 0;

  DType gradient_dtype() const { return gradient_dtype_; }

 private:
  // Returns whether all new parameters are finite, which is asked while they are in the cache.
  bool ApplyByBlocks(const KernelArguments& arguments, const Control& control) {
    constexpr int64_t kBlock = 8192;
    constexpr int kMaxTensors = 4;
    bool is_finite = true;
    const void* inputs[kMaxTensors];
    void* outputs[kMaxTensors];
    for (int64_t begin = 0; begin < num_elements_; begin += kBlock) {
      const int64_t count = std::min(kBlock, num_elements_ - begin);
      for (int i = 0; i <= num_outputs_; ++i) inputs[i] = arguments.input<float>(i) + begin;
      inputs[1] = arguments.input<char>(1) + begin * SizeOf(gradient_dtype_);
      for (int i = 0; i < num_outputs_; ++i) outputs[i] = arguments.output<float>(i) + begin;
      Apply({inputs, outputs, nullptr, arguments.step}, control, count);
      is_finite = is_finite && AllFinite(arguments.output<float>(0) + begin, count);
    }
    return is_finite;
  }

  Control ReadControl(const KernelArguments& arguments) const {
    if (!has_control_) return {1.0f, static_cast<double>(arguments.step->step)};
    const float* const control = arguments.input<float>(num_outputs_ + 1);
    return {control[0], control[1]};
  }

  void KeepEverything(const KernelArguments& arguments) const {
    for (int i = 0; i < num_outputs_; ++i) {
      const float* const old_values = arguments.input<float>(i == 0 ? 0 : i + 1);
      float* const out = arguments.output<float>(i);
      if (out != old_values) std::memcpy(out, old_values, num_elements_ * sizeof(float));
    }
  }

  const DType gradient_dtype_;
  const int64_t num_elements_;
  const int num_outputs_;
  const bool has_control_;
};

class SgdUpdate : public Update {
 public:
  explicit SgdUpdate(const KernelSpec& spec)
      : Update(spec),
        lr_(spec.call.attributes.Float("lr")),
        weight_decay_(spec.call.attributes.Float("weight_decay")) {}

 private:
  void Apply(const KernelArguments& arguments, const Control& control,
             int64_t num_elements) override {
    const SgdFactors factors = {control.factor, static_cast<float>(lr_ * arguments.step->lr_factor),
                                static_cast<float>(weight_decay_), 0.0f};
    WithFloatType(gradient_dtype(), [&](auto zero) {
      SgdBlock(arguments.input<float>(0), arguments.input<decltype(zero)>(1), factors, num_elements,
               arguments.output<float>(0));
    });
  }

  const double lr_;
  const double weight_decay_;
};

class SgdMomentumUpdate : public Update {
 public:
  explicit SgdMomentumUpdate(const KernelSpec& spec)
      : Update(spec),
        lr_(spec.call.attributes.Float("lr")),
        momentum_(spec.call.attributes.Float("momentum")),
        weight_decay_(spec.call.attributes.Float("weight_decay")),
        nesterov_(spec.call.attributes.Bool("nesterov")) {}

 private:
  void Apply(const KernelArguments& arguments, const Control& control,
             int64_t num_elements) override {
    const SgdFactors factors = {control.factor, static_cast<float>(lr_ * arguments.step->lr_factor),
                                static_cast<float>(weight_decay_), static_cast<float>(momentum_)};
    WithFloatType(gradient_dtype(), [&](auto zero) {
      using Gradient = decltype(zero);
      const auto block = nesterov_ ? SgdNesterovBlock<Gradient> : SgdMomentumBlock<Gradient>;
      block(arguments.input<float>(0), arguments.input<Gradient>(1), arguments.input<float>(2),
            factors, num_elements, arguments.output<float>(0), arguments.output<float>(1));
    });
  }

  const double lr_;
  const double momentum_;
  const double weight_decay_;
  const bool nesterov_;
};

class AdamUpdate : public Update {
 public:
  explicit AdamUpdate(const KernelSpec& spec)
      : Update(spec), attributes_{spec.call.attributes.Float("lr"),
                                  spec.call.attributes.Float("beta1"),
                                  spec.call.attributes.Float("beta2"),
                                  spec.call.attributes.Float("epsilon"),
                                  spec.call.attributes.Float("weight_decay"),
                                  spec.call.attributes.Bool("decoupled")} {}

 private:
  void Apply(const KernelArguments& arguments, const Control& control,
             int64_t num_elements) override {
    const AdamFactors factors =
        MakeAdamFactors(attributes_, arguments.step->lr_factor, control.factor, control.step);
    WithFloatType(gradient_dtype(), [&](auto zero) {
      using Gradient = decltype(zero);
      AdamBlock<Gradient>(
          {arguments.input<float>(0), arguments.input<Gradient>(1), arguments.input<float>(2),
           arguments.input<float>(3), arguments.output<float>(0), arguments.output<float>(1),
           arguments.output<float>(2)},
          factors, num_elements);
    });
  }

  const AdamAttributes attributes_;
};

}  // namespace

void RegisterOptimizerKernels(KernelRegistry& registry) {
  registry.Register("sgd_update", MakeKernel<SgdUpdate>);
  registry.Register("sgd_momentum_update", MakeKernel<SgdMomentumUpdate>);
  registry.Register("adam_update", MakeKernel<AdamUpdate>);
}

}  // namespace zg
