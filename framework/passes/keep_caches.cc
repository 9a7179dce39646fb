#include "framework/passes/keep_caches.h"

#include <map>
#include <string>

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "framework/passes/micro_batch_values.h"

namespace zg {
namespace {

struct Kept {
  ir::Value* cache = nullptr;
  const ir::Section* last_writer = nullptr;
};

std::string Described(const TensorType& type, Sbp placement) {
  return fmt::format("{} {{{}}}", type.ToString(), placement.ToString());
}

class CacheKeeper {
 public:
  explicit CacheKeeper(ir::Graph* graph) : graph_(*graph) {}

  Status Keep(ir::Node* node, bool differs) {
    // Copied, because Write() erases the node.
    const std::string name = node->attributes.String("name");
    const std::string where = fmt::format("eval '{}', cache '{}'", node->section->name, name);
    return Write(node, name, differs ? Sbp::S(0) : Sbp::B()).WithContext(where);
  }

 private:
  Status Write(ir::Node* node, const std::string& name, Sbp placement) {
    const TensorType& type = node->outputs[0]->type;
    Kept& kept = caches_[name];
    if (kept.last_writer == node->section) {
      return InvalidArgument("the program has it twice, expected once");
    }
    if (kept.cache == nullptr) {
      ir::Builder variables(&graph_, graph_.section(ir::SectionKind::kVariables));
      variables.set_scope(node->scope);
      kept.cache = variables.Op(
          "cache", {}, {{"dtype", type.dtype}, {"shape", type.shape}, {"placement", placement}},
          name + ".cache");
      ZG_RETURN_IF_ERROR(variables.status());
    }
    const Sbp other = kept.cache->producer->attributes.Sbp("placement");
    if (kept.cache->type != type || other != placement) {
      return InvalidArgument("it is {}, but {} in eval '{}'; expected the same in all programs",
                             Described(type, placement), Described(kept.cache->type, other),
                             kept.last_writer->name);
    }
    kept.last_writer = node->section;
    ir::Builder builder(&graph_, node->section);
    builder.InsertBefore(node);
    builder.set_scope(node->scope);
    ir::Value* const written =
        builder.Op(op_names::kWriteRows, {kept.cache, node->inputs[0], node->inputs[1]}, {}, name);
    ZG_RETURN_IF_ERROR(builder.status());
    graph_.ReplaceAllUses(node->outputs[0], written);
    graph_.Erase(node);
    return Status::Ok();
  }

  ir::Graph& graph_;
  std::map<std::string, Kept> caches_;
};

}  // namespace

StatusOr<bool> KeepCaches::Run(ir::Graph& graph) const {
  CacheKeeper keeper(&graph);
  bool changed = false;
  for (const auto& section : graph.sections()) {
    const auto by_micro_batch = MicroBatchValues(*section);
    for (ir::Node* node : std::vector<ir::Node*>(section->nodes)) {
      if (node->op->name != op_names::kCachedRows) continue;
      if (section->kind != ir::SectionKind::kEval) {
        return InvalidArgument("cache '{}': it is in the section {}, expected an eval program",
                               node->attributes.String("name"), SectionKindName(section->kind))
            .WithContext(node->scope);
      }
      ZG_RETURN_IF_ERROR(keeper.Keep(node, by_micro_batch.count(node->inputs[0]) != 0));
      changed = true;
    }
  }
  return changed;
}

}  // namespace zg
