// MemoryCategory: what a value's bytes are counted as, in plans and reports.
#pragma once

#include <string_view>

#include "framework/base/status.h"

namespace zg {

enum class MemoryCategory {
  kParameters,
  kGradients,
  kOptimizerState,
  kActivations,
  kCommunication,
  kWorkspace
};
inline constexpr int kNumMemoryCategories = 6;
std::string_view MemoryCategoryName(MemoryCategory category);  // "parameters", ..., as in reports
StatusOr<MemoryCategory> ParseMemoryCategory(std::string_view name);

}  // namespace zg
