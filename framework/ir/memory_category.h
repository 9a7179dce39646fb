// MemoryCategory: what a value's bytes are counted as, in plans and reports. It follows from the
// roles of variables (role.h) and from the ops between them; nothing is decided by it.
#pragma once

#include <string_view>

namespace zg {

namespace ir {
struct Value;
}

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

// A variable counts by its role, and a view as what it views. A gradient of parameters is one once
// it is packed into its bucket, also when it is summed, cast or placed otherwise; the bucket of one
// that is reduced at once, and parameters gathered from shards, are communication.
MemoryCategory CategoryOf(const ir::Value& value);

}  // namespace zg
