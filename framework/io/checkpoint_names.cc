#include "framework/io/checkpoint_names.h"

#include <fmt/core.h>

#include <algorithm>

namespace zg {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr size_t kMaxStepDigits = 18;  // fits an int64_t

}  // namespace

std::string StepDirectoryName(int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

std::optional<int64_t> ParseStepDirectoryName(std::string_view name) {
  if (name.substr(0, kStepPrefix.size()) != kStepPrefix) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  if (digits.empty() || digits.size() > kMaxStepDigits) return std::nullopt;
  int64_t step = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    step = 10 * step + (digit - '0');
  }
  if (StepDirectoryName(step) != name) return std::nullopt;
  return step;
}

std::string ShardName(std::string_view part, int shard, int num_shards) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", part, shard + 1, num_shards);
}

std::string IndexName(std::string_view part) {
  return fmt::format("{}.safetensors.index.json", part);
}

bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
         });
}

}  // namespace zg
