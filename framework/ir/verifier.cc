#include "framework/ir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "framework/ir/node_error.h"
#include "framework/ir/verify_collectives.h"

namespace zg::ir {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, VerifyOptions options) : graph_(graph), options_(options) {}

  Status Run() {
    ZG_RETURN_IF_ERROR(CheckLinksAndOrder());
    ZG_RETURN_IF_ERROR(CheckUsers());
    for (const Node* node : graph_.AllNodes()) {
      ZG_RETURN_IF_ERROR(CheckPlaceInSections(*node));
      ZG_RETURN_IF_ERROR(CheckAttributes(*node));
      ZG_RETURN_IF_ERROR(CheckTypes(*node));
      for (const Value* output : node->outputs) ZG_RETURN_IF_ERROR(CheckPlacement(*output));
    }
    ZG_RETURN_IF_ERROR(CheckTensors());
    return options_.collectives_inserted ? VerifyCollectives(graph_) : Status::Ok();
  }

 private:
  // Walks the nodes in execution order; also fills `values_`.
  Status CheckLinksAndOrder() {
    section_of_.reserve(graph_.AllNodes().size());
    for (const auto& section : graph_.sections()) {
      for (const Node* node : section->nodes) {
        if (node->section != section.get()) {
          return NodeError(*node, "its section is not the one that lists it");
        }
        for (const Value* input : node->inputs) ZG_RETURN_IF_ERROR(CheckInput(*node, input));
        for (size_t i = 0; i < node->outputs.size(); ++i) {
          const Value* output = node->outputs[i];
          if (output->producer != node || output->output_index != static_cast<int>(i)) {
            return NodeError(*node, "%{}: its producer is not the node that lists it as output {}",
                             output->name, i);
          }
          // A value that is found by its own name shares it with no other.
          const Value* const named = graph_.FindValue(output->name);
          if (named == nullptr)
            return NodeError(*node, "%{} is not found by its name", output->name);
          if (named != output) {
            return NodeError(*node, "two values are named %{}, expected a name of its own",
                             output->name);
          }
          section_of_[output] = section.get();
          values_.push_back(output);
        }
      }
    }
    return Status::Ok();
  }

  Status CheckInput(const Node& node, const Value* input) {
    if (input == nullptr) return NodeError(node, "an input is null");
    const auto found = section_of_.find(input);
    if (found == section_of_.end()) {
      return NodeError(node, "it reads %{}, expected a value of an earlier node", input->name);
    }
    const Section& from = *found->second;
    if (&from == node.section || from.kind == SectionKind::kVariables) return Status::Ok();
    if (node.section->kind == SectionKind::kEval) {
      return NodeError(node,
                       "it reads %{} of section {}, expected a variable or a value of its "
                       "own section",
                       input->name, SectionKindName(from.kind));
    }
    // Sections are walked in the order in which they run, so `from` runs before.
    return Status::Ok();
  }

  Status CheckUsers() {
    using Use = std::pair<const Value*, const Node*>;
    std::vector<Use> reads;
    std::vector<Use> listed;
    for (const Node* node : graph_.AllNodes()) {
      for (const Value* input : node->inputs) reads.emplace_back(input, node);
    }
    for (const Value* value : values_) {
      for (const Node* user : value->users) listed.emplace_back(value, user);
    }
    std::sort(reads.begin(), reads.end());
    std::sort(listed.begin(), listed.end());
    if (reads == listed) return Status::Ok();
    const auto users = [](const std::vector<Use>& uses, const Value* value) {
      std::vector<const Node*> found;
      for (const auto& [used, user] : uses) {
        if (used == value) found.push_back(user);
      }
      return found;
    };
    for (const Value* value : values_) {
      const std::vector<const Node*> expected = users(reads, value);
      if (users(listed, value) == expected) continue;
      return NodeError(*value->producer, "%{} lists {} users, expected the {} nodes that read it",
                       value->name, value->users.size(), expected.size());
    }
    return Status::Ok();
  }

  Status CheckPlaceInSections(const Node& node) {
    const bool is_variable = node.op->traits.kind == OpKind::kVariable;
    const bool in_variables = node.section->kind == SectionKind::kVariables;
    if (is_variable == in_variables) return Status::Ok();
    return is_variable ? NodeError(node, "expected every variable in section variables")
                       : NodeError(node, "expected nothing but variables in section variables");
  }

  static bool HasItsAttributes(const Node& node) {
    const auto& items = node.attributes.items();
    const std::vector<AttributeDef>& defs = node.op->attributes;
    return items.size() == defs.size() &&
           std::all_of(defs.begin(), defs.end(), [&](const AttributeDef& def) {
             const auto found = items.find(def.name);
             return found != items.end() && found->second.index() == def.example.index();
           });
  }

  Status CheckAttributes(const Node& node) {
    if (HasItsAttributes(node)) return Status::Ok();
    Attributes completed = node.attributes;
    ZG_RETURN_IF_ERROR(
        CompleteAttributes(node.op->attributes, &completed).WithContext(NodeLabel(node)));
    for (const auto& [name, value] : completed.items()) {
      const auto found = node.attributes.items().find(name);
      if (found == node.attributes.items().end()) {
        return NodeError(node, "attribute '{}' is missing", name);
      }
      if (found->second.index() == value.index()) continue;
      return NodeError(node,
                       "attribute '{}': got {}, which is a literal, expected a value of the "
                       "type of {}",
                       name, ir::ToString(found->second), ir::ToString(value));
    }
    return Status::Ok();
  }

  Status CheckTypes(const Node& node) {
    StatusOr<std::vector<TensorType>> types = node.op->infer_shape(node.Call());
    if (!types.ok()) return types.status().WithContext(NodeLabel(node));
    if (types->size() != node.outputs.size()) {
      return NodeError(node, "got {} outputs, expected {}", node.outputs.size(), types->size());
    }
    for (size_t i = 0; i < types->size(); ++i) {
      const Value& output = *node.outputs[i];
      if (output.type == (*types)[i]) continue;
      return NodeError(node, "%{}: got type {}, expected {}", output.name, output.type.ToString(),
                       (*types)[i].ToString());
    }
    return Status::Ok();
  }

  Status CheckPlacement(const Value& value) {
    const Mesh& mesh = graph_.mesh();
    const Node& node = *value.producer;
    const bool placed = !values_[0]->sbp.empty();
    if (value.sbp.empty() != !placed) {
      return NodeError(node, "%{} has {} placement but %{} has {}, expected all or none",
                       value.name, placed ? "no" : "a", values_[0]->name, placed ? "one" : "none");
    }
    if (!placed) return Status::Ok();
    if (static_cast<int>(value.sbp.size()) != mesh.num_axes()) {
      return NodeError(node, "%{}: got placement {}, expected one entry per axis of mesh({})",
                       value.name, zg::ToString(value.sbp), mesh.ToString());
    }
    Shape local = value.type.shape;
    for (int axis = 0; axis < mesh.num_axes(); ++axis) {
      if (!value.sbp[axis].is_split()) continue;
      const int dim = value.sbp[axis].dim();
      const int num_ranks = mesh.axes()[axis].size;
      if (dim < 0 || dim >= local.num_dims()) {
        return NodeError(node, "%{}: got placement {} of {}, expected a dim that it has",
                         value.name, zg::ToString(value.sbp), value.type.ToString());
      }
      if (local.dim(dim) % (num_ranks * value.sbp[axis].groups()) != 0) {
        return NodeError(node,
                         "%{}: got placement {} of {}, expected a dim that divides by the {} ranks "
                         "of axis {}",
                         value.name, zg::ToString(value.sbp), value.type.ToString(), num_ranks,
                         mesh.axes()[axis].name);
      }
      local.set_dim(dim, local.dim(dim) / num_ranks);
    }
    return Status::Ok();
  }

  Status CheckTensors() {
    std::unordered_set<std::string_view> names;
    std::unordered_map<const Value*, std::vector<const StoredTensor*>> by_storage;
    for (const StoredTensor& tensor : graph_.tensors()) {
      const auto error = [&](const Status& status) {
        return status.WithContext(fmt::format("tensor \"{}\"", tensor.name));
      };
      if (!names.insert(tensor.name).second) {
        return error(InvalidArgument("two tensors have this name"));
      }
      if (!tensor.copy_of.empty()) {
        const StoredTensor* original = graph_.FindTensor(tensor.copy_of);
        if (original == nullptr) {
          return error(
              InvalidArgument("it is a copy of \"{}\", which does not exist", tensor.copy_of));
        }
        if (!original->copy_of.empty()) {
          return error(
              InvalidArgument("it is a copy of \"{}\", which is a copy itself", tensor.copy_of));
        }
        if (original->type.shape != tensor.type.shape) {
          return error(InvalidArgument("{} is a copy of \"{}\", {}, expected the same shape",
                                       tensor.type.ToString(), tensor.copy_of,
                                       original->type.ToString()));
        }
      }
      const Value* storage = tensor.storage;
      if (section_of_.count(storage) == 0 ||
          storage->producer->op->traits.kind != OpKind::kVariable) {
        return error(InvalidArgument(
            "its storage is {}, expected a variable of the graph",
            section_of_.count(storage) == 0 ? "not in the graph" : "%" + storage->name));
      }
      if (const Status split = CheckSplit(tensor); !split.ok()) return error(split);
      const int64_t num_elements = StoredElements(tensor);
      const int64_t storage_elements = ElementsOfEachPart(tensor);
      if (tensor.type.dtype != storage->type.dtype || tensor.offset_elements < 0 ||
          tensor.offset_elements > storage_elements - num_elements) {
        return error(InvalidArgument("{} at {} does not lie inside its storage %{}: {}",
                                     tensor.type.ToString(), tensor.offset_elements, storage->name,
                                     storage->type.ToString()));
      }
      by_storage[storage].push_back(&tensor);
    }
    for (const Value* value : values_) {
      if (by_storage.count(value) != 0) ZG_RETURN_IF_ERROR(CheckNoOverlap(by_storage[value]));
    }
    return Status::Ok();
  }

  // The axis that splits the tensor splits its storage into as many parts, and is the one that the
  // variable names.
  Status CheckSplit(const StoredTensor& tensor) {
    const Attributes& attributes = tensor.storage->producer->attributes;
    const NdSbp of_storage = attributes.Has("split") ? attributes.NdSbp("split") : NdSbp();
    const bool is_bucket = tensor.name != tensor.storage->name;
    if (!SplitsTheSameAxis(tensor.split, of_storage) ||
        (!is_bucket && tensor.split != of_storage)) {
      const auto text = [](const NdSbp& split) {
        return split.empty() ? "along no axis" : zg::ToString(split);
      };
      return InvalidArgument("it is split {}, but its variable %{} {}; expected the same",
                             text(tensor.split), tensor.storage->name, text(of_storage));
    }
    if (tensor.split.empty()) return Status::Ok();
    const Mesh& mesh = graph_.mesh();
    const NdSbp& storage = tensor.storage->sbp;
    int num_splits = 0;
    bool fits = static_cast<int>(tensor.split.size()) == mesh.num_axes();
    for (int axis = 0; fits && axis < mesh.num_axes(); ++axis) {
      const Sbp split = tensor.split[axis];
      if (split.is_broadcast()) continue;
      ++num_splits;
      fits = split.is_split() && split.dim() < tensor.type.shape.num_dims() &&
             tensor.type.shape.dim(split.dim()) % (mesh.axes()[axis].size * split.groups()) == 0 &&
             (storage.empty() || storage[axis].is_split());
    }
    if (fits && num_splits <= 1) return Status::Ok();
    return InvalidArgument(
        "{} is split {} on mesh({}), expected one axis at most, whose ranks divide the dim, and "
        "storage that it splits, too",
        tensor.type.ToString(), zg::ToString(tensor.split), mesh.ToString());
  }

  static bool SplitsTheSameAxis(const NdSbp& a, const NdSbp& b) {
    if (a.size() != b.size()) return false;
    for (size_t axis = 0; axis < a.size(); ++axis) {
      if (a[axis].is_split() != b[axis].is_split()) return false;
    }
    return true;
  }

  // The ranks along the axis that splits the tensor.
  int64_t PartsOf(const StoredTensor& tensor) const {
    for (size_t axis = 0; axis < tensor.split.size(); ++axis) {
      if (tensor.split[axis].is_split()) return graph_.mesh().axes()[axis].size;
    }
    return 1;
  }
  int64_t StoredElements(const StoredTensor& tensor) const {  // in each part of the storage
    return tensor.type.shape.num_elements() / PartsOf(tensor);
  }
  int64_t ElementsOfEachPart(const StoredTensor& tensor) const {
    return tensor.storage->type.shape.num_elements() / PartsOf(tensor);
  }

  Status CheckNoOverlap(std::vector<const StoredTensor*> tensors) {
    std::sort(tensors.begin(), tensors.end(), [](const StoredTensor* a, const StoredTensor* b) {
      return a->offset_elements < b->offset_elements;
    });
    const StoredTensor* last = nullptr;  // the last one that has elements
    for (const StoredTensor* tensor : tensors) {
      if (tensor->type.shape.num_elements() == 0) continue;
      if (last != nullptr &&
          last->offset_elements + StoredElements(*last) > tensor->offset_elements) {
        return InvalidArgument("tensor \"{}\" at {} overlaps tensor \"{}\" {} at {} in %{}",
                               tensor->name, tensor->offset_elements, last->name,
                               last->type.ToString(), last->offset_elements, tensor->storage->name);
      }
      last = tensor;
    }
    return Status::Ok();
  }

  const Graph& graph_;
  const VerifyOptions options_;
  std::vector<const Value*> values_;  // in execution order
  std::unordered_map<const Value*, const Section*> section_of_;
};

}  // namespace

Status Verify(const Graph& graph, VerifyOptions options) { return Verifier(graph, options).Run(); }

}  // namespace zg::ir
