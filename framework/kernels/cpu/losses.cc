#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/vector_math.h"

namespace zg {
namespace {

// Elements summed in f32 before the sum goes on in f64.
constexpr int64_t kBlock = 4096;

ZG_MULTIVERSION float SquaredErrorBlock(const float* a, const float* b, int64_t count) {
  return SumTerms(
      count, [=](const auto& load) __attribute__((always_inline)) {
        const Lanes difference = load(a, 0.0f) - load(b, 0.0f);
        return difference * difference;
      });
}

ZG_MULTIVERSION void ScaledDifference(const float* a, const float* b, float scale, int64_t count,
                                      float* out) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = (a[i] - b[i]) * scale;
}

// sum (prediction - target)^2 / divisor.
class MseLoss : public Kernel {
 public:
  explicit MseLoss(const KernelSpec& spec)
      : divisor_(spec.call.attributes.Float("divisor")),
        num_elements_(spec.call.inputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const float* const prediction = arguments.input<float>(0);
    const float* const target = arguments.input<float>(1);
    double sum = 0.0;
    for (int64_t begin = 0; begin < num_elements_; begin += kBlock) {
      const int64_t count = std::min(kBlock, num_elements_ - begin);
      sum += SquaredErrorBlock(prediction + begin, target + begin, count);
    }
    arguments.output<float>(0)[0] = static_cast<float>(sum / divisor_);
    return Status::Ok();
  }

 private:
  const double divisor_;
  const int64_t num_elements_;
};

// dprediction = (prediction - target) * 2 dloss / divisor.
class MseLossGrad : public Kernel {
 public:
  explicit MseLossGrad(const KernelSpec& spec)
      : divisor_(spec.call.attributes.Float("divisor")),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const double dloss = arguments.input<float>(0)[0];
    ScaledDifference(arguments.input<float>(1), arguments.input<float>(2),
                     static_cast<float>(2.0 * dloss / divisor_), num_elements_,
                     arguments.output<float>(0));
    return Status::Ok();
  }

 private:
  const double divisor_;
  const int64_t num_elements_;
};

// ln(sum of e^x) of every row, stabilised by the row's maximum.
ZG_MULTIVERSION void LogSumExpRows(const float* x, int64_t rows, int64_t columns, float* terms,
                                   float* result) {
  for (int64_t row = 0; row < rows; ++row, x += columns) {
    const float maximum = MaximumOf(x, columns);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < columns; ++i) terms[i] = Exp(x[i] - maximum);
    const float sum = SumTerms(
        columns, [=](const auto& load)
                     __attribute__((always_inline)) { return load(terms, 0.0f); });
    result[row] = maximum + Log(sum);
  }
}

// (softmax(x) - onehot(target)) * scale, for one row. `out` may be `x`.
ZG_MULTIVERSION void SoftmaxMinusOneHot(const float* x, int64_t columns, float log_sum_exp,
                                        int64_t target, float scale, float* out) {
  const float at_target = (Exp(x[target] - log_sum_exp) - 1.0f) * scale;
  ZG_INDEPENDENT
  for (int64_t i = 0; i < columns; ++i) out[i] = Exp(x[i] - log_sum_exp) * scale;
  out[target] = at_target;
}

Status CheckTarget(const char* op, int64_t row, int64_t target, int64_t columns) {
  if (target >= 0 && target < columns) return Status::Ok();
  return InvalidArgument("{}: the target at position {} is {}, the logits have classes 0 to {}", op,
                         row, target, columns - 1);
}

// loss = sum over rows of (log_sum_exp - logits[target]) / divisor.
class SoftmaxCrossEntropy : public Kernel {
 public:
  explicit SoftmaxCrossEntropy(const KernelSpec& spec)
      : logits_(AsMatrix(spec.call.inputs[0].shape)),
        divisor_(spec.call.attributes.Float("divisor")) {}

  // The exponentials of one row.
  int64_t workspace_bytes() const override {
    return logits_.columns * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    const float* const logits = arguments.input<float>(0);
    const int64_t* const targets = arguments.input<int64_t>(1);
    float* const log_sum_exp = arguments.output<float>(1);
    LogSumExpRows(logits, logits_.rows, logits_.columns, static_cast<float*>(arguments.workspace),
                  log_sum_exp);
    double sum = 0.0;
    for (int64_t row = 0; row < logits_.rows; ++row) {
      ZG_RETURN_IF_ERROR(CheckTarget("softmax_cross_entropy", row, targets[row], logits_.columns));
      sum += static_cast<double>(log_sum_exp[row]) - logits[row * logits_.columns + targets[row]];
    }
    arguments.output<float>(0)[0] = static_cast<float>(sum / divisor_);
    return Status::Ok();
  }

 private:
  const MatrixShape logits_;
  const double divisor_;
};

class SoftmaxCrossEntropyGrad : public Kernel {
 public:
  explicit SoftmaxCrossEntropyGrad(const KernelSpec& spec)
      : logits_(AsMatrix(spec.call.inputs[1].shape)),
        divisor_(spec.call.attributes.Float("divisor")) {}

  Status Run(const KernelArguments& arguments) override {
    const float scale = static_cast<float>(arguments.input<float>(0)[0] / divisor_);
    const float* const logits = arguments.input<float>(1);
    const int64_t* const targets = arguments.input<int64_t>(2);
    const float* const log_sum_exp = arguments.input<float>(3);
    float* const dlogits = arguments.output<float>(0);
    for (int64_t row = 0; row < logits_.rows; ++row) {
      ZG_RETURN_IF_ERROR(
          CheckTarget("softmax_cross_entropy_grad", row, targets[row], logits_.columns));
      SoftmaxMinusOneHot(logits + row * logits_.columns, logits_.columns, log_sum_exp[row],
                         targets[row], scale, dlogits + row * logits_.columns);
    }
    return Status::Ok();
  }

 private:
  const MatrixShape logits_;
  const double divisor_;
};

}  // namespace

void RegisterLossKernels(KernelRegistry& registry) {
  registry.Register("mse_loss", MakeKernel<MseLoss>);
  registry.Register("mse_loss_grad", MakeKernel<MseLossGrad>);
  registry.Register("softmax_cross_entropy", MakeKernel<SoftmaxCrossEntropy>);
  registry.Register("softmax_cross_entropy_grad", MakeKernel<SoftmaxCrossEntropyGrad>);
}

}  // namespace zg
