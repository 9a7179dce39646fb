// MemoryCategory: the category that plans and reports count a value's bytes in. It follows from the
// roles of variables (role.h) and from the ops between them; nothing else depends on it.
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

// A variable counts by its role, and a view like the value it views. A gradient of parameters
// counts as gradient once it is packed into its bucket, also when it is summed, cast or placed
// otherwise. A gradient bucket in flight, and parameters gathered from shards, count as
// communication.
MemoryCategory CategoryOf(const ir::Value& value);

}  // namespace zg
