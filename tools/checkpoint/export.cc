#include <fmt/format.h>

#include "framework/base/format.h"
#include "framework/io/float_values.h"
#include "framework/io/safetensors_writer.h"
#include "framework/io/weights.h"
#include "tools/checkpoint/commands.h"
#include "tools/checkpoint/stored_values.h"
#include "tools/checkpoint/target.h"
#include "tools/command/inputs.h"

namespace zg::checkpoint_tool {

StatusOr<std::string> Export(const ExportOptions& options) {
  ZG_RETURN_IF_ERROR(CheckTargetFile(options.to, options.may_replace));
  ZG_ASSIGN_OR_RETURN(const Weights weights, Weights::Open(options.from));
  ZG_RETURN_IF_ERROR(command::CheckIsNoInput(options.to, weights.inputs()));
  const TrainState* const state = weights.state();
  if (state == nullptr) {
    return InvalidArgument("{}: got weights of another program, expected a checkpoint; use convert",
                           options.from);
  }
  std::vector<TensorToWrite> tensors;
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : weights.tensors()) {
    if (tensor.is_optimizer_state && !options.with_optimizer) continue;
    const SafetensorsEntry& entry = *tensor.entry;
    if (!IsFloatValue(entry.dtype)) {
      return DataLoss("{}: tensor {}: got {}, expected F32", options.from, name,
                      SafetensorsDTypeName(entry.dtype));
    }
    const int64_t elements = static_cast<int64_t>(entry.size_bytes()) / (BitsOf(entry.dtype) / 8);
    tensors.push_back({name, options.dtype, entry.shape, nullptr,
                       SourceOf({entry.dtype, tensor.data, 1, elements}, false, options.dtype)});
    bytes += static_cast<uint64_t>(elements) * (BitsOf(options.dtype) / 8);
  }
  const size_t count = tensors.size();
  SafetensorsWriteOptions write_options;
  write_options.metadata = {{"model", state->model}, {"step", fmt::to_string(state->step)}};
  ZG_RETURN_IF_ERROR(WriteSafetensors(options.to, std::move(tensors), write_options));
  return fmt::format("{}: {} tensors of step {}, {} in {}\n", options.to, count, state->step,
                     FormatBytes(static_cast<int64_t>(bytes)), SafetensorsDTypeName(options.dtype));
}

}  // namespace zg::checkpoint_tool
