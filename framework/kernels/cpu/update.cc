#include "framework/kernels/cpu/update.h"

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/multiversion.h"
#include "framework/ops/update_program.h"

namespace zg {
namespace {

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

}  // namespace

Update::Update(const KernelSpec& spec)
    : gradient_dtype_(spec.call.inputs[1].dtype),
      num_elements_(spec.outputs[0].shape.num_elements()),
      num_outputs_(static_cast<int>(spec.outputs.size())),
      has_control_(static_cast<int>(spec.call.inputs.size()) == num_outputs_ + 2),
      lr_(spec.call.attributes.Float("lr")),
      weight_decay_(spec.call.attributes.Float("weight_decay")) {}

Status Update::Run(const KernelArguments& arguments) {
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

// Returns whether all new parameters are finite, which is asked while they are in the cache.
bool Update::ApplyByBlocks(const KernelArguments& arguments, const Control& control) {
  constexpr int64_t kBlock = 8192;
  constexpr int kMaxTensors = 2 + kMaxUpdateStates;
  bool is_finite = true;
  const void* inputs[kMaxTensors];
  void* outputs[kMaxTensors];
  for (int64_t begin = 0; begin < num_elements_; begin += kBlock) {
    const int64_t count = std::min(kBlock, num_elements_ - begin);
    for (int i = 0; i <= num_outputs_; ++i) inputs[i] = arguments.input<float>(i) + begin;
    inputs[1] = arguments.input<char>(1) + begin * SizeOf(gradient_dtype_);
    for (int i = 0; i < num_outputs_; ++i) outputs[i] = arguments.output<float>(i) + begin;
    Apply({inputs, outputs, arguments.workspace, arguments.step}, control, count);
    is_finite = is_finite && AllFinite(arguments.output<float>(0) + begin, count);
  }
  return is_finite;
}

Update::Control Update::ReadControl(const KernelArguments& arguments) const {
  if (!has_control_) return {1.0f, static_cast<double>(arguments.step->step)};
  const float* const control = arguments.input<float>(num_outputs_ + 1);
  return {control[0], control[1]};
}

void Update::KeepEverything(const KernelArguments& arguments) const {
  for (int i = 0; i < num_outputs_; ++i) {
    const float* const old_values = arguments.input<float>(i == 0 ? 0 : i + 1);
    float* const out = arguments.output<float>(i);
    if (out != old_values) std::memcpy(out, old_values, num_elements_ * sizeof(float));
  }
}

}  // namespace zg
