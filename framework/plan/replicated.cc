#include "framework/plan/replicated.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace zg::plan {
namespace {

// The first stage that shards the category; 4: none does.
int FirstStageOf(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kOptimizerState:
      return 1;
    case MemoryCategory::kGradients:
      return 2;
    case MemoryCategory::kParameters:
      return 3;
    default:
      return 4;
  }
}

std::string Reason(MemoryCategory category, const ZeroOptions& zero) {
  const int first = FirstStageOf(category);
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
  std::map<MemoryCategory, Replicated> by_category;
  std::map<const ir::Value*, std::vector<std::string>> tensors;  // by storage
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    tensors[tensor.storage].push_back(tensor.name);
  }
  for (const ir::Node* node : graph.AllNodes()) {
    const bool is_pack = node->op->traits.kind == ir::OpKind::kPack;
    if (node->op->traits.kind != ir::OpKind::kVariable && !is_pack) continue;
    const ir::Value& value = *node->outputs[0];
    if (FirstStageOf(value.category) > 3 || !IsWhole(value)) continue;
    Replicated& replicated = by_category[value.category];
    replicated.category = value.category;
    replicated.reason = Reason(value.category, zero);
    replicated.bytes += graph.LocalType(value).bytes();
    if (is_pack) {
      for (const ir::Value* gradient : node->inputs) replicated.tensors.push_back(gradient->name);
    } else {
      const std::vector<std::string>& stored = tensors[&value];
      replicated.tensors.insert(replicated.tensors.end(), stored.begin(), stored.end());
    }
  }
  std::vector<Replicated> all;
  for (auto& [category, replicated] : by_category) all.push_back(std::move(replicated));
  return all;
}

}  // namespace zg::plan
