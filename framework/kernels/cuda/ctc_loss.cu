#include <fmt/format.h>

#include <string>

#include "framework/kernels/ctc_call.h"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/math/ctc_math.h"

namespace zg::cuda {
namespace {

// The sample of a block, whose threads share the states.
struct CtcSample {
  __device__ CtcSample(const CtcShape& shape, const CtcOperands& operands)
      : target{operands.targets + blockIdx.x * shape.labels, operands.target_lengths[blockIdx.x],
               shape.blank},
        num_steps(operands.input_lengths[blockIdx.x]),
        classes(shape.classes),
        log_probabilities(operands.log_probabilities + blockIdx.x * shape.steps * shape.classes) {}

  // Whether lengths and labels are possible; the same in every thread.
  __device__ bool IsValid(const CtcShape& shape, const FaultSink& faults) const {
    __shared__ bool is_valid;
    if (threadIdx.x == 0) is_valid = true;
    __syncthreads();
    const bool fits = num_steps >= 1 && num_steps <= shape.steps && target.length >= 0 &&
                      target.length <= shape.labels;
    if (!fits && threadIdx.x == 0) {
      is_valid = false;
      const bool is_input = num_steps < 1 || num_steps > shape.steps;
      faults.Record(is_input ? num_steps : target.length, shape.classes);
    }
    for (int64_t i = threadIdx.x; fits && i < target.length; i += kThreads) {
      const int64_t label = target.labels[i];
      if (label >= 0 && label < shape.classes && label != shape.blank) continue;
      is_valid = false;
      faults.Record(label, shape.classes);
    }
    __syncthreads();
    return is_valid;
  }

  __device__ float Emission(int64_t step, int64_t state) const {
    return log_probabilities[step * classes + target.ClassOf(state)];
  }

  // The paths to every state at every step: to[step][state].
  __device__ void RunForward(float* to) const {
    const int64_t num_states = target.num_states();
    for (int64_t step = 0; step < num_steps; ++step) {
      const float* const before = to + (step - 1) * num_states;
      for (int64_t state = threadIdx.x; state < num_states; state += kThreads) {
        float sum = state < 2 ? 0.0f : kImpossible;
        if (step > 0) {
          sum = LogOfSum(before[state], state >= 1 ? before[state - 1] : kImpossible,
                         target.MaySkipTo(state) ? before[state - 2] : kImpossible);
        }
        to[step * num_states + state] = sum + Emission(step, state);
      }
      __syncthreads();
    }
  }

  // After RunForward().
  __device__ float LogLikelihood(const float* to) const {
    const int64_t num_states = target.num_states();
    const float* const last = to + num_steps * num_states - 1;
    return LogOfSum(last[0], num_states > 1 ? last[-1] : kImpossible, kImpossible);
  }

  // The paths from a state at a step; `behind` are those of the step after it.
  __device__ float From(int64_t step, int64_t state, const float* behind) const {
    const int64_t num_states = target.num_states();
    float sum = state >= num_states - 2 ? 0.0f : kImpossible;
    if (step < num_steps - 1) {
      const bool skips = state + 2 < num_states && target.MaySkipTo(state + 2);
      sum = LogOfSum(behind[state], state + 1 < num_states ? behind[state + 1] : kImpossible,
                     skips ? behind[state + 2] : kImpossible);
    }
    return sum + Emission(step, state);
  }

  CtcTarget target;
  int64_t num_steps;
  int64_t classes;
  const float* log_probabilities;
};

// A block for each sample. The workspace has `to` of each.
__global__ void CtcLossKernel(CtcOperands operands, FaultSink faults, CtcShape shape,
                              float* workspace, float* losses) {
  const CtcSample sample(shape, operands);
  if (!sample.IsValid(shape, faults)) return;
  float* const to = workspace + blockIdx.x * shape.steps * shape.max_states();
  sample.RunForward(to);
  if (threadIdx.x == 0) losses[blockIdx.x] = -sample.LogLikelihood(to);
}

// States of one class are a list, in ascending order: `next` of the last is -1.
__device__ inline void LinkStates(const CtcTarget& target, int32_t* next, bool* is_first) {
  const int64_t num_states = target.num_states();
  for (int64_t state = threadIdx.x; state < num_states; state += kThreads) {
    int64_t before = state - 2, behind = state + 2;
    while (before >= 0 && target.ClassOf(before) != target.ClassOf(state)) before -= 2;
    while (behind < num_states && target.ClassOf(behind) != target.ClassOf(state)) behind += 2;
    is_first[state] = before < 0;
    next[state] = behind < num_states ? static_cast<int32_t>(behind) : -1;
  }
  __syncthreads();
}

__host__ __device__ inline int64_t GradientFloats(const CtcShape& shape) {
  return (shape.steps + 5) * shape.max_states();
}

// A block for each sample. The workspace has `to`, two steps of `from`, shares and links of each.
__global__ void CtcLossGradKernel(const float* dlosses, CtcOperands operands, FaultSink faults,
                                  CtcShape shape, float* workspace, float* gradients) {
  const CtcSample sample(shape, operands);
  if (!sample.IsValid(shape, faults)) return;
  const int64_t num_states = sample.target.num_states();
  float* const to = workspace + blockIdx.x * GradientFloats(shape);
  float* const from = to + shape.steps * shape.max_states();
  float* const shares = from + 2 * shape.max_states();
  int32_t* const next = reinterpret_cast<int32_t*>(shares + shape.max_states());
  bool* const is_first = reinterpret_cast<bool*>(next + shape.max_states());
  LinkStates(sample.target, next, is_first);
  sample.RunForward(to);
  const float log_likelihood = sample.LogLikelihood(to);
  const float dloss = dlosses[blockIdx.x];
  const float of_no_path = dloss == 0.0f ? 0.0f : NAN;
  float* const gradient = gradients + blockIdx.x * shape.steps * shape.classes;
  for (int64_t step = shape.steps - 1; step >= 0; --step) {
    const bool has_paths = step < sample.num_steps && log_likelihood > kImpossible;
    const float start = step < sample.num_steps && !has_paths ? of_no_path : 0.0f;
    float* const row = gradient + step * shape.classes;
    for (int64_t c = threadIdx.x; c < shape.classes; c += kThreads) row[c] = start;
    if (!has_paths) continue;
    float* const own = from + step % 2 * num_states;
    for (int64_t state = threadIdx.x; state < num_states; state += kThreads) {
      own[state] = sample.From(step, state, from + (step + 1) % 2 * num_states);
      shares[state] = ShareOfState(to[step * num_states + state], own[state],
                                   sample.Emission(step, state), log_likelihood);
    }
    __syncthreads();
    for (int64_t state = threadIdx.x; state < num_states; state += kThreads) {
      if (!is_first[state]) continue;
      float share = 0.0f;
      for (int64_t one = state; one >= 0; one = next[one]) share += shares[one];
      row[sample.target.ClassOf(state)] = share * -dloss;
    }
    __syncthreads();
  }
}

std::string BadLengthOrLabel(const char* op, const DeviceFault& fault) {
  return fmt::format(
      "{}: got the length or label {}, expected lengths within the operands, and labels that are one "
      "of the {} classes other than the blank",
      op, fault.got, fault.limit);
}

class CtcLoss : public Kernel {
 public:
  explicit CtcLoss(const KernelSpec& spec) : shape_(CtcShape::Of(spec.call, 0)) {}

  int64_t workspace_bytes() const override {
    return shape_.samples * shape_.steps * shape_.max_states() *
           static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    return Launch(CtcLossKernel, {dim3(static_cast<unsigned>(shape_.samples))}, arguments.stream,
                  CtcOperands(arguments, 0), FaultSinkOf(arguments), shape_,
                  static_cast<float*>(arguments.workspace), arguments.output<float>(0));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return BadLengthOrLabel("ctc_loss", fault);
  }

 private:
  const CtcShape shape_;
};

class CtcLossGrad : public Kernel {
 public:
  explicit CtcLossGrad(const KernelSpec& spec) : shape_(CtcShape::Of(spec.call, 1)) {}

  int64_t workspace_bytes() const override {
    return shape_.samples * GradientFloats(shape_) * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    return Launch(CtcLossGradKernel, {dim3(static_cast<unsigned>(shape_.samples))},
                  arguments.stream, arguments.input<float>(0), CtcOperands(arguments, 1),
                  FaultSinkOf(arguments), shape_, static_cast<float*>(arguments.workspace),
                  arguments.output<float>(0));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return BadLengthOrLabel("ctc_loss_grad", fault);
  }

 private:
  const CtcShape shape_;
};

}  // namespace

void RegisterCtcLossKernels(KernelRegistry& registry) {
  registry.Register("ctc_loss", MakeKernel<CtcLoss>);
  registry.Register("ctc_loss_grad", MakeKernel<CtcLossGrad>);
}

}  // namespace zg::cuda
