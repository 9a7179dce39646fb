#include <fmt/format.h>

#include <vector>

#include "framework/base/format.h"
#include "framework/io/checkpoint_reader.h"
#include "tools/checkpoint/commands.h"

namespace zg::checkpoint_tool {
namespace {

std::string ShapeText(const SafetensorsEntry& entry) {
  return fmt::format("{}[{}]", SafetensorsDTypeName(entry.dtype), fmt::join(entry.shape, ","));
}

std::string TensorTable(const CheckpointReader& checkpoint, bool of_optimizer) {
  std::vector<std::vector<std::string>> rows = {{"tensor", "shape", "bytes", "file"}};
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (tensor.is_optimizer_state != of_optimizer) continue;
    rows.push_back({name, ShapeText(*tensor.entry), FormatBytes(tensor.entry->size_bytes()),
                    std::string(tensor.file)});
  }
  return rows.size() == 1 ? "none\n" : FormatTable(rows);
}

}  // namespace

StatusOr<std::string> Inspect(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const CheckpointReader checkpoint, CheckpointReader::Open(path));
  const TrainState& state = checkpoint.state();
  uint64_t bytes[2] = {};
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    bytes[tensor.is_optimizer_state ? 1 : 0] += tensor.entry->size_bytes();
  }
  std::string text =
      fmt::format("{}\nmodel {}, step {}, {} updates\nparameters {}, optimizer state {}\n",
                  checkpoint.directory(), state.model, state.step, state.updates,
                  FormatBytes(bytes[0]), FormatBytes(bytes[1]));
  for (const auto& [group, count] : state.skipped_steps) {
    text += fmt::format("{} did not update the group '{}'\n", Counted(count, "step"), group);
  }
  text += "\nsettings\n";
  for (const auto& [name, value] : state.settings) text += fmt::format("  {} = {}\n", name, value);
  for (const bool of_optimizer : {false, true}) {
    text += fmt::format("\n{}\n{}", of_optimizer ? "optimizer state" : "parameters",
                        TensorTable(checkpoint, of_optimizer));
  }
  return text;
}

}  // namespace zg::checkpoint_tool
