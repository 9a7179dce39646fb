#include "framework/kernels/cpu/update.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/ops/parameter_copy.h"
#include "framework/ops/update_program.h"

namespace zg {
namespace {

// Elements whose new parameters are copied, or checked for being finite, while they are in the
// cache.
constexpr int64_t kBlock = 8192;

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
      copy_(CopyOf(spec.call.attributes)),
      num_outputs_(static_cast<int>(spec.outputs.size()) - (copy_ ? 1 : 0)),
      num_sharing_(NumSharing(spec.threads, num_elements_, kBlock, num_outputs_ + 1)),
      has_control_(static_cast<int>(spec.call.inputs.size()) == num_outputs_ + 2),
      lr_(spec.call.attributes.Float("lr")),
      weight_decay_(spec.call.attributes.Float("weight_decay")) {}

Status Update::Run(const KernelArguments& arguments) {
  const Control control = ReadControl(arguments);
  if (control.factor == 0.0f) {
    KeepEverything(arguments);
    return Status::Ok();
  }
  std::atomic<bool> is_finite{true};
  ForEqualRanges(arguments.threads, num_sharing_, num_elements_, kBlock,
                 [&](int64_t begin, int64_t end, int thread) {
                   if (!ApplyRange(arguments, control, begin, end, thread)) is_finite = false;
                 });
  if (is_finite) return Status::Ok();
  return FailedPrecondition("an updated parameter is not finite");
}

// Returns whether all new parameters are finite, if that is requested.
bool Update::ApplyRange(const KernelArguments& arguments, const Control& control, int64_t begin,
                        int64_t end, int thread) {
  constexpr int kMaxTensors = 2 + kMaxUpdateStates;
  const bool asks = arguments.step->stop_on_non_finite;
  bool is_finite = true;
  const void* inputs[kMaxTensors];
  void* outputs[kMaxTensors];
  void* const workspace = WorkspaceOf(thread, arguments.workspace, BytesOfThread());
  while (begin < end) {
    const int64_t count = asks || copy_ ? std::min(kBlock, end - begin) : end - begin;
    for (int i = 0; i <= num_outputs_; ++i) inputs[i] = arguments.input<float>(i) + begin;
    inputs[1] = arguments.input<char>(1) + begin * SizeOf(gradient_dtype_);
    for (int i = 0; i < num_outputs_; ++i) outputs[i] = arguments.output<float>(i) + begin;
    Apply({inputs, outputs, workspace, arguments.step}, control, count, thread);
    CopyRange(arguments, begin, count);
    is_finite = is_finite && (!asks || AllFinite(arguments.output<float>(0) + begin, count));
    begin += count;
  }
  return is_finite;
}

Update::Control Update::ReadControl(const KernelArguments& arguments) const {
  if (!has_control_) return {1.0f, static_cast<double>(arguments.step->step)};
  const float* const control = arguments.input<float>(num_outputs_ + 1);
  return {control[0], control[1]};
}

void Update::CopyRange(const KernelArguments& arguments, int64_t begin, int64_t count) const {
  if (!copy_) return;
  ConvertFloats(DType::kF32, arguments.output<float>(0) + begin, *copy_,
                arguments.output<char>(num_outputs_) + begin * SizeOf(*copy_), count);
}

void Update::KeepEverything(const KernelArguments& arguments) const {
  for (int i = 0; i < num_outputs_; ++i) {
    const float* const old_values = arguments.input<float>(i == 0 ? 0 : i + 1);
    float* const out = arguments.output<float>(i);
    if (out != old_values) std::memcpy(out, old_values, num_elements_ * sizeof(float));
  }
  CopyRange(arguments, 0, num_elements_);
}

}  // namespace zg
