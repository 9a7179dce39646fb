#include <cmath>
#include <cstdint>

#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

// Every update is what torch.optim computes, in one pass over memory. Outputs may be the inputs.

struct SgdFactors {
  float lr;
  float weight_decay;
  float momentum;
};

ZG_MULTIVERSION void SgdBlock(const float* p, const float* g, SgdFactors f, int64_t count,
                              float* p_out) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    p_out[i] = p[i] - f.lr * (g[i] + f.weight_decay * p[i]);
  }
}

ZG_MULTIVERSION void SgdMomentumBlock(const float* p, const float* g, const float* m, SgdFactors f,
                                      int64_t count, float* p_out, float* m_out) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const float momentum = f.momentum * m[i] + (g[i] + f.weight_decay * p[i]);
    p_out[i] = p[i] - f.lr * momentum;
    m_out[i] = momentum;
  }
}

ZG_MULTIVERSION void SgdNesterovBlock(const float* p, const float* g, const float* m, SgdFactors f,
                                      int64_t count, float* p_out, float* m_out) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const float gradient = g[i] + f.weight_decay * p[i];
    const float momentum = f.momentum * m[i] + gradient;
    p_out[i] = p[i] - f.lr * (gradient + f.momentum * momentum);
    m_out[i] = momentum;
  }
}

struct AdamFactors {
  float decay;         // of the parameter itself: 1 - lr * weight_decay if decoupled, else 1
  float weight_decay;  // added to the gradient: 0 if decoupled
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float epsilon;
  float inverse_correction2;  // 1 / sqrt(1 - beta2^step)
  float step_size;            // lr / (1 - beta1^step)
};

struct AdamArrays {
  const float* p;
  const float* g;
  const float* m;
  const float* v;
  float* p_out;
  float* m_out;
  float* v_out;
};

ZG_MULTIVERSION void AdamBlock(const AdamArrays& arrays, const AdamFactors& factors,
                               int64_t count) {
  const AdamArrays a = arrays;
  const AdamFactors f = factors;
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const float p = a.p[i] * f.decay;
    const float g = a.g[i] + f.weight_decay * p;
    const float m = a.m[i] + f.one_minus_beta1 * (g - a.m[i]);
    const float v = f.beta2 * a.v[i] + f.one_minus_beta2 * g * g;
    const float denominator = __builtin_sqrtf(v) * f.inverse_correction2 + f.epsilon;
    a.p_out[i] = p - f.step_size * m / denominator;
    a.m_out[i] = m;
    a.v_out[i] = v;
  }
}

class SgdUpdate : public Kernel {
 public:
  explicit SgdUpdate(const KernelSpec& spec)
      : lr_(spec.call.attributes.Float("lr")),
        weight_decay_(spec.call.attributes.Float("weight_decay")),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const SgdFactors factors = {static_cast<float>(lr_ * arguments.step->lr_factor),
                                static_cast<float>(weight_decay_), 0.0f};
    SgdBlock(arguments.input<float>(0), arguments.input<float>(1), factors, num_elements_,
             arguments.output<float>(0));
    return Status::Ok();
  }

 private:
  const double lr_;
  const double weight_decay_;
  const int64_t num_elements_;
};

class SgdMomentumUpdate : public Kernel {
 public:
  explicit SgdMomentumUpdate(const KernelSpec& spec)
      : lr_(spec.call.attributes.Float("lr")),
        momentum_(spec.call.attributes.Float("momentum")),
        weight_decay_(spec.call.attributes.Float("weight_decay")),
        block_(spec.call.attributes.Bool("nesterov") ? SgdNesterovBlock : SgdMomentumBlock),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const SgdFactors factors = {static_cast<float>(lr_ * arguments.step->lr_factor),
                                static_cast<float>(weight_decay_), static_cast<float>(momentum_)};
    block_(arguments.input<float>(0), arguments.input<float>(1), arguments.input<float>(2), factors,
           num_elements_, arguments.output<float>(0), arguments.output<float>(1));
    return Status::Ok();
  }

 private:
  const double lr_;
  const double momentum_;
  const double weight_decay_;
  decltype(&SgdMomentumBlock) const block_;
  const int64_t num_elements_;
};

class AdamUpdate : public Kernel {
 public:
  explicit AdamUpdate(const KernelSpec& spec)
      : lr_(spec.call.attributes.Float("lr")),
        beta1_(spec.call.attributes.Float("beta1")),
        beta2_(spec.call.attributes.Float("beta2")),
        epsilon_(spec.call.attributes.Float("epsilon")),
        weight_decay_(spec.call.attributes.Float("weight_decay")),
        decoupled_(spec.call.attributes.Bool("decoupled")),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const double step = static_cast<double>(arguments.step->step);
    const double lr = lr_ * arguments.step->lr_factor;
    AdamFactors factors;
    factors.decay = static_cast<float>(decoupled_ ? 1.0 - lr * weight_decay_ : 1.0);
    factors.weight_decay = static_cast<float>(decoupled_ ? 0.0 : weight_decay_);
    factors.beta2 = static_cast<float>(beta2_);
    factors.one_minus_beta1 = static_cast<float>(1.0 - beta1_);
    factors.one_minus_beta2 = static_cast<float>(1.0 - beta2_);
    factors.epsilon = static_cast<float>(epsilon_);
    factors.inverse_correction2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2_, step)));
    factors.step_size = static_cast<float>(lr / (1.0 - std::pow(beta1_, step)));
    AdamBlock({arguments.input<float>(0), arguments.input<float>(1), arguments.input<float>(2),
               arguments.input<float>(3), arguments.output<float>(0), arguments.output<float>(1),
               arguments.output<float>(2)},
              factors, num_elements_);
    return Status::Ok();
  }

 private:
  const double lr_;
  const double beta1_;
  const double beta2_;
  const double epsilon_;
  const double weight_decay_;
  const bool decoupled_;
  const int64_t num_elements_;
};

}  // namespace

void RegisterOptimizerKernels(KernelRegistry& registry) {
  registry.Register("sgd_update", MakeKernel<SgdUpdate>);
  registry.Register("sgd_momentum_update", MakeKernel<SgdMomentumUpdate>);
  registry.Register("adam_update", MakeKernel<AdamUpdate>);
}

}  // namespace zg
