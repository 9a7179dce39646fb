#include <cstdint>

#include "framework/kernels/adam_attributes.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/update.h"
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

class SgdUpdate : public Update {
 public:
  explicit SgdUpdate(const KernelSpec& spec) : Update(spec) {}

 private:
  void Apply(const KernelArguments& arguments, const Control& control, int64_t num_elements,
             int /*thread*/) override {
    const SgdFactors factors = {control.factor, static_cast<float>(LrOf(*arguments.step)),
                                static_cast<float>(weight_decay()), 0.0f};
    WithFloatType(gradient_dtype(), [&](auto zero) {
      SgdBlock(arguments.input<float>(0), arguments.input<decltype(zero)>(1), factors, num_elements,
               arguments.output<float>(0));
    });
  }
};

class SgdMomentumUpdate : public Update {
 public:
  explicit SgdMomentumUpdate(const KernelSpec& spec)
      : Update(spec),
        momentum_(spec.call.attributes.Float("momentum")),
        nesterov_(spec.call.attributes.Bool("nesterov")) {}

 private:
  void Apply(const KernelArguments& arguments, const Control& control, int64_t num_elements,
             int /*thread*/) override {
    const SgdFactors factors = {control.factor, static_cast<float>(LrOf(*arguments.step)),
                                static_cast<float>(weight_decay()), static_cast<float>(momentum_)};
    WithFloatType(gradient_dtype(), [&](auto zero) {
      using Gradient = decltype(zero);
      const auto block = nesterov_ ? SgdNesterovBlock<Gradient> : SgdMomentumBlock<Gradient>;
      block(arguments.input<float>(0), arguments.input<Gradient>(1), arguments.input<float>(2),
            factors, num_elements, arguments.output<float>(0), arguments.output<float>(1));
    });
  }

  const double momentum_;
  const bool nesterov_;
};

class AdamUpdate : public Update {
 public:
  explicit AdamUpdate(const KernelSpec& spec)
      : Update(spec),
        attributes_(AdamAttributesOf(spec.call.attributes)),
        after_updates_(static_cast<double>(spec.call.attributes.Int("after_updates"))) {}

 private:
  void Apply(const KernelArguments& arguments, const Control& control, int64_t num_elements,
             int /*thread*/) override {
    const AdamFactors factors = MakeAdamFactors(attributes_, arguments.step->lr_factor,
                                                control.factor, control.number - after_updates_);
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
  const double after_updates_;
};

}  // namespace

void RegisterOptimizerKernels(KernelRegistry& registry) {
  registry.Register("sgd_update", MakeKernel<SgdUpdate>);
  registry.Register("sgd_momentum_update", MakeKernel<SgdMomentumUpdate>);
  registry.Register("adam_update", MakeKernel<AdamUpdate>);
}

}  // namespace zg
