#include "framework/ir/memory_category.h"

namespace zg {
namespace {

constexpr std::string_view kCategoryNames[kNumMemoryCategories] = {
    "parameters", "gradients", "optimizer_state", "activations", "communication", "workspace"};

}  // namespace

std::string_view MemoryCategoryName(MemoryCategory category) {
  return kCategoryNames[static_cast<int>(category)];
}

StatusOr<MemoryCategory> ParseMemoryCategory(std::string_view name) {
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    if (kCategoryNames[i] == name) return static_cast<MemoryCategory>(i);
  }
  return InvalidArgument("unknown memory category '{}'", name);
}

}  // namespace zg
