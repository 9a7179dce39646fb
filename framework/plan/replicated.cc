#include "framework/plan/replicated.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "framework/ops/update_states.h"
#include "framework/passes/zero_stage.h"

namespace zg::plan {
namespace {

// The role of the value, if a stage shards that role.
std::optional<Role> ShardedRole(const ir::Value& value) {
  const bool is_pack = value.producer->op->traits.kind == ir::OpKind::kPack;
  if (is_pack && !ir::IsInFlight(value)) return Role::kGradient;
  if (!ir::IsVariable(value) || FirstStageThatShards(ir::RoleOf(value)) > kLastStage) {
    return std::nullopt;
  }
  return ir::RoleOf(value);
}

// Whether it holds an update's statistics of rows or columns.
bool IsOfRowsOrColumns(const ir::Value& value) {
  return std::any_of(value.users.begin(), value.users.end(), [&](const ir::Node* user) {
    return StatesOfUpdate(*user->op) == StatesOf::kRowsAndColumns &&
           (user->inputs[2] == &value || user->inputs[3] == &value);
  });
}

// The update that reads the value, possibly after sums, casts or changes of placement.
const ir::Node* UpdateOf(const ir::Value& value) {
  std::vector<const ir::Value*> open = {&value};
  std::set<const ir::Value*> seen(open.begin(), open.end());
  const auto add = [&](const ir::Value* next) {
    if (seen.insert(next).second) open.push_back(next);
  };
  while (!open.empty()) {
    const ir::Value& next = *open.back();
    open.pop_back();
    for (const ir::Node* user : next.users) {
      switch (user->op->traits.kind) {
        case ir::OpKind::kUpdate:
          return user;
        case ir::OpKind::kAssign:
          add(user->inputs[0]);
          break;
        case ir::OpKind::kBoxing:
        case ir::OpKind::kCast:
        case ir::OpKind::kAccumulate:
          add(user->outputs[0]);
          break;
        default:
          break;
      }
    }
  }
  return nullptr;
}

// The highest stage up to which the bucket is sharded.
int64_t StageOf(const ir::Value& value) {
  const ir::Value* bucket = &value;
  if (!ir::IsVariable(value) || ir::RoleOf(value) == Role::kGradient) {
    const ir::Node* update = UpdateOf(value);
    if (update == nullptr) return kLastStage;
    bucket = update->inputs[0];
    while (!ir::IsVariable(*bucket)) bucket = bucket->producer->inputs[0];
  }
  return bucket->producer->attributes.Int("stage");
}

// The contents of a bucket.
struct Contents {
  std::vector<std::string> tensors;
  int64_t most_elements = 0;  // of a single tensor
};

std::string Reason(const ir::Value& value, Role role, const Contents& contents,
                   const ZeroOptions& zero) {
  if (IsOfRowsOrColumns(value)) return "one number for each row or column of a matrix";
  const int first = FirstStageThatShards(role);
  int64_t stage = StageOf(value);
  if (contents.most_elements < zero.shard_min_elements && stage == 0) {
    if (zero.highest_stage() >= first) {
      return fmt::format("fewer than {} elements", zero.shard_min_elements);
    }
    stage = zero.highest_stage();
  }
  if (stage < first) {
    return fmt::format("stage {} keeps them whole; stage {} shards them", stage, first);
  }
  return "every rank sums its own until the end of a step";  // reduce-every step
}

bool IsWhole(const ir::Value& value) {
  return std::none_of(value.sbp.begin(), value.sbp.end(), [](Sbp sbp) { return sbp.is_split(); });
}

}  // namespace

std::vector<Replicated> ListReplicated(const ir::Graph& graph, const ZeroOptions& zero) {
  if (graph.mesh().num_ranks() == 1) return {};
  std::map<std::pair<MemoryCategory, std::string>, Replicated> by_reason;
  std::map<const ir::Value*, Contents> contents;  // by storage
  const auto add = [](const std::string& name, int64_t elements, Contents* to) {
    to->tensors.push_back(name);
    to->most_elements = std::max(to->most_elements, elements);
  };
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    add(tensor.name, tensor.type.shape.num_elements(), &contents[tensor.storage]);
  }
  for (const ir::Node* node : graph.AllNodes()) {
    if (node->outputs.empty()) continue;
    const ir::Value& value = *node->outputs[0];
    const std::optional<Role> role = ShardedRole(value);
    if (!role.has_value() || !IsWhole(value)) continue;
    Contents& held = contents[&value];
    if (!ir::IsVariable(value)) {
      for (const ir::Value* gradient : node->inputs) {
        add(gradient->name, gradient->type.shape.num_elements(), &held);
      }
    }
    const MemoryCategory category = CategoryOf(value);
    const std::string reason = Reason(value, *role, held, zero);
    Replicated& replicated = by_reason[{category, reason}];
    replicated.category = category;
    replicated.reason = reason;
    replicated.bytes += graph.LocalType(value).bytes();
    replicated.tensors.insert(replicated.tensors.end(), held.tensors.begin(), held.tensors.end());
  }
  std::vector<Replicated> all;
  for (auto& [reason, replicated] : by_reason) all.push_back(std::move(replicated));
  return all;
}

}  // namespace zg::plan
