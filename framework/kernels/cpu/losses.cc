#include <algorithm>
#include <cstdint>
#include <limits>

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
  constexpr int kSums = 4;
  Lanes sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
    for (int s = 0; s < kSums; ++s) {
      const Lanes difference = LoadLanes(a + i + s * kLanes) - LoadLanes(b + i + s * kLanes);
      sums[s] += difference * difference;
    }
  }
  for (; i < count; i += kLanes) {
    const int64_t rest = std::min<int64_t>(count - i, kLanes);
    const Lanes difference = LoadLanes(a + i, rest, 0.0f) - LoadLanes(b + i, rest, 0.0f);
    sums[0] += difference * difference;
  }
  return SumOfLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
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

// ln(sum of e^x over the row), stabilised by the row's maximum, for up to 16 rows.
ZG_MULTIVERSION void LogSumExpRows(const float* x, int64_t rows, int64_t columns, float* result) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  float maxima[kLanes] = {};
  float sums[kLanes];
  std::fill_n(sums, kLanes, 1.0f);
  const int64_t body = columns / kLanes * kLanes;
  const int64_t rest = columns - body;
  for (int64_t row = 0; row < rows; ++row, x += columns) {
    Lanes maximum = Lanes{} + kMinusInfinity;
    for (int64_t i = 0; i < body; i += kLanes) maximum = Maximum(maximum, LoadLanes(x + i));
    if (rest > 0) maximum = Maximum(maximum, LoadLanes(x + body, rest, kMinusInfinity));
    maxima[row] = MaximumOfLanes(maximum);
    Lanes sum{};
    for (int64_t i = 0; i < body; i += kLanes) sum += Exp(LoadLanes(x + i) - maxima[row]);
    if (rest > 0) sum += Exp(LoadLanes(x + body, rest, kMinusInfinity) - maxima[row]);
    sums[row] = SumOfLanes(sum);
  }
  StoreLanes(LoadLanes(maxima) + Log(LoadLanes(sums)), result, rows);
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

  Status Run(const KernelArguments& arguments) override {
    const float* const logits = arguments.input<float>(0);
    const int64_t* const targets = arguments.input<int64_t>(1);
    float* const log_sum_exp = arguments.output<float>(1);
    double sum = 0.0;
    for (int64_t begin = 0; begin < logits_.rows; begin += kLanes) {
      const int64_t end = std::min(begin + kLanes, logits_.rows);
      LogSumExpRows(logits + begin * logits_.columns, end - begin, logits_.columns,
                    log_sum_exp + begin);
      for (int64_t row = begin; row < end; ++row) {
        ZG_RETURN_IF_ERROR(
            CheckTarget("softmax_cross_entropy", row, targets[row], logits_.columns));
        sum += static_cast<double>(log_sum_exp[row]) - logits[row * logits_.columns + targets[row]];
      }
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
