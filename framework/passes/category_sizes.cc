#include "framework/passes/category_sizes.h"

#include <fmt/format.h>

#include <vector>

#include "framework/base/format.h"
#include "framework/ir/memory_category.h"

namespace zg {

std::string CategorySizes(const MemoryPlan& plan) {
  std::vector<std::string> sizes;
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    sizes.push_back(fmt::format("{} {}", MemoryCategoryName(static_cast<MemoryCategory>(i)),
                                FormatBytes(plan.category_bytes[i])));
  }
  return fmt::to_string(fmt::join(sizes, ", "));
}

}  // namespace zg
