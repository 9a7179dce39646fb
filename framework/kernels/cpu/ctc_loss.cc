#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/ctc_call.h"
#include "framework/kernels/math/ctc_math.h"

namespace zg {
namespace {

// Paths of one sample, in the scratch memory of a thread. Rows of states have two impossible ones
// before them or behind them.
class CtcSample {
 public:
  static constexpr int64_t kBeyond = 2;

  static int64_t ScratchBytes(const CtcShape& shape) {
    const int64_t row = shape.max_states() + 2 * kBeyond;
    return (shape.steps + 5) * row * static_cast<int64_t>(sizeof(float));
  }

  CtcSample(const CtcShape& shape, const CtcOperands& operands, int64_t sample, void* scratch)
      : shape_(shape),
        target_{operands.targets + sample * shape.labels, operands.target_lengths[sample],
                shape.blank},
        num_steps_(operands.input_lengths[sample]),
        log_probabilities_(operands.log_probabilities + sample * shape.steps * shape.classes),
        stride_(shape.max_states() + 2 * kBeyond) {
    float* next = static_cast<float*>(scratch);
    const auto take = [&](int64_t rows) { return std::exchange(next, next + rows * stride_); };
    emissions_ = take(1) + kBeyond;
    skips_ = take(1) + kBeyond;
    classes_ = reinterpret_cast<int32_t*>(take(1)) + kBeyond;
    for (int i = 0; i < 2; ++i) from_[i] = take(1) + kBeyond;
    to_ = take(shape.steps) + kBeyond;
    for (int64_t state = 0; state < target_.num_states() + kBeyond; ++state) {
      const bool is_state = state < target_.num_states();
      skips_[state] = is_state && target_.MaySkipTo(state) ? 0.0f : kImpossible;
      if (is_state) classes_[state] = static_cast<int32_t>(target_.ClassOf(state));
    }
  }

  int64_t num_steps() const { return num_steps_; }

  // The paths to every state at every step; returns the logarithm of the text's probability.
  float RunForward() {
    const int64_t num_states = target_.num_states();
    for (int64_t step = 0; step < num_steps_; ++step) {
      ReadEmissions(step);
      float* const to = ToStates(step);
      std::fill(to - kBeyond, to, kImpossible);
      if (step == 0) {
        std::fill(to, to + num_states, kImpossible);
        std::copy_n(emissions_, std::min<int64_t>(2, num_states), to);
        continue;
      }
      const float* const before = ToStates(step - 1);
      const float* const emissions = emissions_;
      const float* const skips = skips_;
      Multiversion([=]() ZG_VERSION {
        ZG_INDEPENDENT
        for (int64_t state = 0; state < num_states; ++state) {
          const float sum =
              LogOfSum(before[state], before[state - 1], before[state - 2] + skips[state]);
          to[state] = sum + emissions[state];
        }
      });
    }
    const float* const last = ToStates(num_steps_ - 1) + num_states - 1;
    return LogOfSum(last[0], num_states > 1 ? last[-1] : kImpossible, kImpossible);
  }

  // The rows of a step's classes: how probable each is, given the text. After RunForward(); from the
  // last step to the first.
  void RunBackward(int64_t step, float log_likelihood, float* shares) {
    const int64_t num_states = target_.num_states();
    ReadEmissions(step);
    float* const from = from_[step % 2];
    const float* const behind = from_[(step + 1) % 2];
    const float* const emissions = emissions_;
    if (step == num_steps_ - 1) {
      std::fill(from, from + num_states, kImpossible);
      for (int64_t state = std::max<int64_t>(0, num_states - 2); state < num_states; ++state) {
        from[state] = emissions[state];
      }
    } else {
      const float* const skips = skips_;
      Multiversion([=]() ZG_VERSION {
        ZG_INDEPENDENT
        for (int64_t state = 0; state < num_states; ++state) {
          const float sum =
              LogOfSum(behind[state], behind[state + 1], behind[state + 2] + skips[state + 2]);
          from[state] = sum + emissions[state];
        }
      });
    }
    std::fill(from + num_states, from + num_states + kBeyond, kImpossible);
    const float* const to = ToStates(step);
    float* const share_of_state = emissions_;  // of a state, read once
    Multiversion([=]() ZG_VERSION {
      ZG_INDEPENDENT
      for (int64_t state = 0; state < num_states; ++state) {
        share_of_state[state] =
            ShareOfState(to[state], from[state], emissions[state], log_likelihood);
      }
    });
    std::fill(shares, shares + shape_.classes, 0.0f);
    for (int64_t state = 0; state < num_states; ++state) {
      shares[classes_[state]] += share_of_state[state];
    }
  }

 private:
  float* ToStates(int64_t step) const { return to_ + step * stride_; }

  void ReadEmissions(int64_t step) {
    const float* const row = log_probabilities_ + step * shape_.classes;
    for (int64_t state = 0; state < target_.num_states(); ++state) {
      emissions_[state] = row[classes_[state]];
    }
  }

  const CtcShape shape_;
  const CtcTarget target_;
  const int64_t num_steps_;
  const float* const log_probabilities_;
  const int64_t stride_;
  float* emissions_;  // of each state, at one step
  float* skips_;      // 0 where a path may come from two states before, else impossible
  int32_t* classes_;  // of each state
  float* from_[2];    // the paths from the states of two steps on
  float* to_;         // the paths to the states of all steps
};

class CtcKernel : public Kernel {
 public:
  int64_t workspace_bytes() const override {
    const int sharing = NumSharing(threads_, shape_.samples, 1, cost());
    return WorkspaceBytes(sharing, CtcSample::ScratchBytes(shape_));
  }

 protected:
  // The log probabilities are operand `first`.
  CtcKernel(const KernelSpec& spec, int first)
      : op_(spec.call.op->name),
        first_(first),
        shape_(CtcShape::Of(spec.call, first)),
        threads_(spec.threads) {}

  // Calls f(number, sample) for all samples.
  template <typename F>
  Status ForSamples(const KernelArguments& arguments, const F& f) const {
    const CtcOperands operands(arguments, first_);
    for (int64_t sample = 0; sample < shape_.samples; ++sample) {
      ZG_RETURN_IF_ERROR(Check(operands, sample));
    }
    const int64_t bytes = CtcSample::ScratchBytes(shape_);
    ForRanges(arguments.threads, shape_.samples, 1, cost(),
              [&](int64_t begin, int64_t end, int thread) {
                void* const scratch = WorkspaceOf(thread, arguments.workspace, bytes);
                for (int64_t sample = begin; sample < end; ++sample) {
                  CtcSample states(shape_, operands, sample, scratch);
                  f(sample, states);
                }
              });
    return Status::Ok();
  }

  const CtcShape& shape() const { return shape_; }

 private:
  int64_t cost() const { return 16 * shape_.steps * shape_.max_states(); }

  Status Check(const CtcOperands& operands, int64_t sample) const {
    const int64_t steps = operands.input_lengths[sample];
    if (steps < 1 || steps > shape_.steps) {
      return InvalidArgument("{}: the input length of sample {} is {}, expected 1 to {}", op_,
                             sample, steps, shape_.steps);
    }
    const int64_t length = operands.target_lengths[sample];
    if (length < 0 || length > shape_.labels) {
      return InvalidArgument("{}: the target length of sample {} is {}, expected 0 to {}", op_,
                             sample, length, shape_.labels);
    }
    for (int64_t i = 0; i < length; ++i) {
      const int64_t label = operands.targets[sample * shape_.labels + i];
      if (label >= 0 && label < shape_.classes && label != shape_.blank) continue;
      return InvalidArgument(
          "{}: label {} of sample {} is {}, expected one of the {} classes other than the blank, {}",
          op_, i, sample, label, shape_.classes, shape_.blank);
    }
    return Status::Ok();
  }

  const std::string op_;
  const int first_;
  const CtcShape shape_;
  const int threads_;
};

class CtcLoss : public CtcKernel {
 public:
  explicit CtcLoss(const KernelSpec& spec) : CtcKernel(spec, 0) {}
  Status Run(const KernelArguments& arguments) override {
    float* const losses = arguments.output<float>(0);
    return ForSamples(arguments, [&](int64_t sample, CtcSample& states) {
      losses[sample] = -states.RunForward();
    });
  }
};

class CtcLossGrad : public CtcKernel {
 public:
  explicit CtcLossGrad(const KernelSpec& spec) : CtcKernel(spec, 1) {}
  Status Run(const KernelArguments& arguments) override {
    const int64_t classes = shape().classes, steps = shape().steps;
    return ForSamples(arguments, [&](int64_t sample, CtcSample& states) {
      const float dloss = arguments.input<float>(0)[sample];
      float* const gradient = arguments.output<float>(0) + sample * steps * classes;
      const float log_likelihood = states.RunForward();
      const int64_t end = states.num_steps() * classes;
      if (log_likelihood == kImpossible) {
        std::fill(gradient, gradient + end, dloss == 0.0f ? 0.0f : NAN);
      } else {
        for (int64_t step = states.num_steps() - 1; step >= 0; --step) {
          float* const row = gradient + step * classes;
          states.RunBackward(step, log_likelihood, row);
          Multiversion([=]() ZG_VERSION {
            ZG_INDEPENDENT
            for (int64_t c = 0; c < classes; ++c) row[c] *= -dloss;
          });
        }
      }
      std::fill(gradient + end, gradient + steps * classes, 0.0f);
    });
  }
};

}  // namespace

void RegisterCtcLossKernels(KernelRegistry& registry) {
  registry.Register("ctc_loss", MakeKernel<CtcLoss>);
  registry.Register("ctc_loss_grad", MakeKernel<CtcLossGrad>);
}

}  // namespace zg
