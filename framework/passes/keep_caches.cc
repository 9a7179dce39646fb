#include "framework/passes/keep_caches.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

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
    const std::string where = Where(*node);
    return Write(node, name, differs ? Sbp::S(0) : Sbp::B()).WithContext(where);
  }

  // After all rows are kept.
  Status Read(ir::Node* node) {
    const auto kept = caches_.find(node->attributes.String("name"));
    if (kept == caches_.end()) {
      return InvalidArgument("it is read, but no program keeps it; expected one that does")
          .WithContext(Where(*node));
    }
    const TensorType& type = kept->second.cache->type;
    if (type != node->outputs[0]->type) {
      return InvalidArgument("{} of it are read, but {} kept; expected the same",
                             node->outputs[0]->type.ToString(), type.ToString())
          .WithContext(Where(*node));
    }
    const std::string name = node->attributes.String("name") + ".left";
    return Replace(node, kept->second.cache, op_names::kReadRows, {node->inputs[1]}, name);
  }

 private:
  static std::string Where(const ir::Node& node) {
    return fmt::format("eval '{}', cache '{}'", node.section->name, node.attributes.String("name"));
  }

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
    return Replace(node, kept.cache, op_names::kWriteRows, {node->inputs[0], node->inputs[1]},
                   name);
  }

  // By `op` of the cache and the other inputs.
  Status Replace(ir::Node* node, ir::Value* cache, const char* op, std::vector<ir::Value*> inputs,
                 const std::string& name) {
    ir::Builder builder(&graph_, node->section);
    builder.InsertBefore(node);
    builder.set_scope(node->scope);
    if (node->inputs.size() > 2) {  // parents
      cache = builder.Op(op_names::kMoveTexts, {cache, node->inputs[2], node->inputs[1]}, {},
                         name + ".moved");
    }
    inputs.insert(inputs.begin(), cache);
    ir::Value* const result = builder.Op(op, std::move(inputs), {}, name);
    ZG_RETURN_IF_ERROR(builder.status());
    graph_.ReplaceAllUses(node->outputs[0], result);
    graph_.Erase(node);
    return Status::Ok();
  }

  ir::Graph& graph_;
  std::map<std::string, Kept> caches_;
};

}  // namespace

StatusOr<bool> KeepCaches::Run(ir::Graph& graph) const {
  CacheKeeper keeper(&graph);
  std::vector<ir::Node*> readers;
  bool changed = false;
  for (const auto& section : graph.sections()) {
    const auto by_micro_batch = MicroBatchValues(*section);
    for (ir::Node* node : std::vector<ir::Node*>(section->nodes)) {
      const bool reads = node->op->name == op_names::kLeftRows;
      const bool writes =
          node->op->name == op_names::kCachedRows || node->op->name == op_names::kKeepRows;
      if (!reads && !writes) continue;
      changed = true;
      if (section->kind != ir::SectionKind::kEval) {
        return InvalidArgument("cache '{}': it is in the section {}, expected an eval program",
                               node->attributes.String("name"), SectionKindName(section->kind))
            .WithContext(node->scope);
      }
      if (reads) {
        readers.push_back(node);
      } else {
        ZG_RETURN_IF_ERROR(keeper.Keep(node, by_micro_batch.count(node->inputs[0]) != 0));
      }
    }
  }
  for (ir::Node* node : readers) ZG_RETURN_IF_ERROR(keeper.Read(node));
  return changed;
}

}  // namespace zg
