#include "framework/nn/share_variables.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "framework/ir/builder.h"

namespace zg::nn {
namespace {

struct Shared {
  int64_t id = 0;  // Variable::id()
  ir::StoredTensor tensor;
};

// Their variables, each once, in the order of their first use, and the place of each name in it.
class All {
 public:
  Status Add(const Traced& function) {
    for (const auto& [id, value] : function.variables->values) ids_[value] = id;
    for (const ir::StoredTensor& tensor : function.graph->tensors()) {
      const int64_t id = ids_.at(tensor.storage);
      const auto [place, is_new] = places_.emplace(tensor.name, variables_.size());
      if (is_new) {
        variables_.push_back({id, tensor});
      } else if (variables_[place->second].id != id) {
        return InvalidArgument("two variables are named '{}'; give one of the modules another name",
                               tensor.name);
      }
    }
    return Status::Ok();
  }

  const std::vector<Shared>& variables() const { return variables_; }
  size_t PlaceOf(const std::string& name) const { return places_.at(name); }

 private:
  std::unordered_map<const ir::Value*, int64_t> ids_;
  std::vector<Shared> variables_;
  std::unordered_map<std::string, size_t> places_;
};

Status AddMissing(const std::vector<Shared>& all, const Traced& function) {
  ir::Builder builder(function.graph, function.graph->section(ir::SectionKind::kVariables));
  for (const Shared& shared : all) {
    ir::Value*& value = function.variables->values[shared.id];
    if (value != nullptr) continue;
    const ir::StoredTensor& tensor = shared.tensor;
    builder.set_scope(tensor.storage->producer->scope);
    value =
        builder.Variable(tensor.name, tensor.type, tensor.initializer, ir::RoleOf(*tensor.storage),
                         tensor.storage->producer->attributes.Bool("trainable"));
    ZG_RETURN_IF_ERROR(builder.status());
    TakeName(*function.graph, value, tensor.name);
  }
  return Status::Ok();
}

}  // namespace

Status ShareVariables(const std::vector<Traced>& functions) {
  All all;
  for (const Traced& function : functions) ZG_RETURN_IF_ERROR(all.Add(function));
  for (const Traced& function : functions) {
    ir::Graph& graph = *function.graph;
    ZG_RETURN_IF_ERROR(AddMissing(all.variables(), function));
    const auto is_before = [&](const std::string& a, const std::string& b) {
      return all.PlaceOf(a) < all.PlaceOf(b);
    };
    std::sort(graph.tensors().begin(), graph.tensors().end(),
              [&](const auto& a, const auto& b) { return is_before(a.name, b.name); });
    std::vector<ir::Node*>& nodes = graph.section(ir::SectionKind::kVariables)->nodes;
    std::sort(nodes.begin(), nodes.end(), [&](const ir::Node* a, const ir::Node* b) {
      return is_before(a->outputs[0]->name, b->outputs[0]->name);
    });
  }
  return Status::Ok();
}

}  // namespace zg::nn
