#include "framework/plan/replicated.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "framework/ops/op_names.h"
#include "framework/passes/zero_stage.h"

namespace zg::plan {
namespace {

// The role of what the value holds, if it is what a stage shards.
std::optional<Role> ShardedRole(const ir::Value& value) {
  const bool is_pack = value.producer->op->traits.kind == ir::OpKind::kPack;
  if (is_pack && !ir::IsInFlight(value)) return Role::kGradient;
  if (!ir::IsVariable(value) || FirstStageThatShards(ir::RoleOf(value)) > kLastStage) {
    return std::nullopt;
  }
  return ir::RoleOf(value);
}

// Whether an update keeps numbers of rows and columns in it (ops/factored_update.cc).
bool IsOfRowsOrColumns(const ir::Value& value) {
  return std::any_of(value.users.begin(), value.users.end(), [&](const ir::Node* user) {
    return user->op->name == op_names::kFactoredUpdate &&
           (user->inputs[2] == &value || user->inputs[3] == &value);
  });
}

std::string Reason(const ir::Value& value, Role role, const ZeroOptions& zero) {
  if (role == Role::kParameter && !ir::IsTrainableParameter(value)) {
    return "not trainable; stages shard what is updated";
  }
  if (IsOfRowsOrColumns(value)) return "one number for each row or column of a matrix";
  const int first = FirstStageThatShards(role);
  if (zero.stage < first) {
    return fmt::format("stage {} keeps them whole; stage {} shards them", zero.stage, first);
  }
  return fmt::format("fewer than {} elements", zero.shard_min_elements);
}

bool IsWhole(const ir::Value& value) {
  return std::none_of(value.sbp.begin(), value.sbp.end(), [](Sbp sbp) { return sbp.is_split(); });
}

}  // namespace

std::vector<Replicated> ListReplicated(const ir::Graph& graph, const ZeroOptions& zero) {
  if (graph.mesh().num_ranks() == 1) return {};
  std::map<std::pair<MemoryCategory, std::string>, Replicated> by_reason;
  std::map<const ir::Value*, std::vector<std::string>> tensors;  // by storage
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    tensors[tensor.storage].push_back(tensor.name);
  }
  for (const ir::Node* node : graph.AllNodes()) {
    if (node->outputs.empty()) continue;
    const ir::Value& value = *node->outputs[0];
    const std::optional<Role> role = ShardedRole(value);
    if (!role.has_value() || !IsWhole(value)) continue;
    const MemoryCategory category = CategoryOf(value);
    const std::string reason = Reason(value, *role, zero);
    Replicated& replicated = by_reason[{category, reason}];
    replicated.category = category;
    replicated.reason = reason;
    replicated.bytes += graph.LocalType(value).bytes();
    if (!ir::IsVariable(value)) {
      for (const ir::Value* gradient : node->inputs) replicated.tensors.push_back(gradient->name);
    } else {
      const std::vector<std::string>& stored = tensors[&value];
      replicated.tensors.insert(replicated.tensors.end(), stored.begin(), stored.end());
    }
  }
  std::vector<Replicated> all;
  for (auto& [reason, replicated] : by_reason) all.push_back(std::move(replicated));
  return all;
}

}  // namespace zg::plan
