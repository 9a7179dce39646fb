#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "framework/io/checkpoint_reader.h"
#include "tools/checkpoint/commands.h"

namespace zg::checkpoint_tool {
namespace {

using Settings = std::map<std::string, std::string>;

// Step and settings together, so that they are compared and shown alike.
Settings Described(const TrainState& state) {
  Settings settings = state.settings;
  settings["model"] = state.model;
  settings["step"] = fmt::to_string(state.step);
  settings["updates"] = fmt::to_string(state.updates);
  for (const auto& [group, count] : state.skipped_steps) {
    settings[fmt::format("steps that skipped '{}'", group)] = fmt::to_string(count);
  }
  return settings;
}

template <typename Map>
std::set<std::string> NamesInEither(const Map& a, const Map& b) {
  std::set<std::string> names;
  for (const Map* map : {&a, &b}) {
    for (const auto& item : *map) names.insert(item.first);
  }
  return names;
}

std::string SettingsThatDiffer(const Settings& a, const Settings& b) {
  std::string text;
  const auto value_of = [](const Settings& settings, const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? "nothing" : found->second;
  };
  for (const std::string& name : NamesInEither(a, b)) {
    if (value_of(a, name) == value_of(b, name)) continue;
    text += fmt::format("{}: {} | {}\n", name, value_of(a, name), value_of(b, name));
  }
  return text;
}

// How the values differ; empty if every bit is the same.
std::string ValuesThatDiffer(const CheckpointReader::Tensor& a, const CheckpointReader::Tensor& b) {
  if (a.entry->dtype != b.entry->dtype || a.entry->shape != b.entry->shape) {
    return fmt::format("{}[{}] | {}[{}]", SafetensorsDTypeName(a.entry->dtype),
                       fmt::join(a.entry->shape, ","), SafetensorsDTypeName(b.entry->dtype),
                       fmt::join(b.entry->shape, ","));
  }
  const uint64_t bytes = a.entry->size_bytes();
  if (bytes == 0 || std::memcmp(a.data, b.data, bytes) == 0) return "";
  if (a.entry->dtype != SafetensorsDType::kF32) return "other bytes";
  const uint64_t elements = bytes / sizeof(float);
  uint64_t num_different = 0;
  double largest = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    const uint8_t* const bytes_a = a.data + i * sizeof(float);
    const uint8_t* const bytes_b = b.data + i * sizeof(float);
    if (std::memcmp(bytes_a, bytes_b, sizeof(float)) == 0) continue;
    ++num_different;
    float value_a = 0;
    float value_b = 0;
    std::memcpy(&value_a, bytes_a, sizeof(float));
    std::memcpy(&value_b, bytes_b, sizeof(float));
    const double difference = std::fabs(static_cast<double>(value_a) - value_b);
    largest = std::isnan(difference) || std::isnan(largest) ? NAN : std::max(largest, difference);
  }
  return fmt::format("{} of {} elements differ, by at most {:.3g}", num_different, elements,
                     largest);
}

}  // namespace

StatusOr<Difference> Diff(const std::string& path_a, const std::string& path_b) {
  ZG_ASSIGN_OR_RETURN(const CheckpointReader a, CheckpointReader::Open(path_a));
  ZG_ASSIGN_OR_RETURN(const CheckpointReader b, CheckpointReader::Open(path_b));
  ZG_RETURN_IF_ERROR(a.CheckData());
  ZG_RETURN_IF_ERROR(b.CheckData());
  Difference difference;
  difference.text = SettingsThatDiffer(Described(a.state()), Described(b.state()));
  size_t num_same = 0;
  for (const std::string& name : NamesInEither(a.tensors(), b.tensors())) {
    const auto in_a = a.tensors().find(name);
    const auto in_b = b.tensors().find(name);
    std::string how;
    if (in_a == a.tensors().end()) {
      how = "only in the second";
    } else if (in_b == b.tensors().end()) {
      how = "only in the first";
    } else {
      how = ValuesThatDiffer(in_a->second, in_b->second);
    }
    if (how.empty()) {
      ++num_same;
    } else {
      difference.text += fmt::format("{}: {}\n", name, how);
    }
  }
  difference.is_same = difference.text.empty();
  difference.text += fmt::format("{} tensors are the same{}\n", num_same,
                                 difference.is_same ? ", and so is all else" : "");
  return difference;
}

}  // namespace zg::checkpoint_tool
