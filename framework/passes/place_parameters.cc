#include "framework/passes/place_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "framework/ir/scope_pattern.h"
#include "framework/ops/update_states.h"
#include "framework/passes/dividing_sizes.h"

namespace zg {
namespace {

// A matrix of LoRA (nn/lora.h): LAYER.lora_A.weight (rank, in) or LAYER.lora_B.weight (out, rank) beside
// LAYER.weight (out, in).
struct Adapter {
  std::string layer;
  int shared_dim = 0;  // of the layer's weight, and of its own

  static std::optional<Adapter> Of(const std::string& parameter) {
    for (const auto& [name, dim] : {std::pair(".lora_A.weight", 1), {".lora_B.weight", 0}}) {
      const size_t size = std::strlen(name);
      const bool ends_so =
          parameter.size() > size && parameter.compare(parameter.size() - size, size, name) == 0;
      if (ends_so) return Adapter{parameter.substr(0, parameter.size() - size), dim};
    }
    return std::nullopt;
  }
};

class Placer {
 public:
  Placer(ir::Graph* graph, const std::vector<PlacementRule>& rules)
      : graph_(*graph), mesh_(graph->mesh()), rules_(rules) {}

  StatusOr<bool> Run() {
    ZG_RETURN_IF_ERROR(CheckOrderOfAxes());
    for (const PlacementRule& rule : rules_) {
      if (rule.of == PlacementRule::Of::kParameters) ZG_RETURN_IF_ERROR(Apply(rule));
    }
    PlaceAdapters();
    ZG_RETURN_IF_ERROR(CheckEveryAxisSplits());
    for (const auto& [variable, chosen] : chosen_) {
      if (chosen.rule->sbp.is_split() && mesh_.axes()[chosen.axis].num_parts() > 1) {
        Split(variable, chosen);
      }
    }
    ZG_RETURN_IF_ERROR(SplitStates());
    SplitTensors();
    return changed_;
  }

 private:
  struct Choice {
    const PlacementRule* rule = nullptr;
    int axis = 0;
  };

  Status Apply(const PlacementRule& rule) {
    const auto error = [&](const Status& status) {
      return status.WithContext(fmt::format("placement rule '{}'", rule.ToString()));
    };
    ZG_ASSIGN_OR_RETURN(const int axis, SharedAxisOf(rule, mesh_));
    ZG_ASSIGN_OR_RETURN(const ScopePattern pattern, ScopePattern::Parse(rule.pattern));
    bool is_known = false;
    for (const ir::StoredTensor& tensor : graph_.tensors()) {
      if (!ir::IsVariable(*tensor.storage) || !IsOfModel(ir::RoleOf(*tensor.storage))) continue;
      const auto named = pattern.ModuleOf(tensor.name);
      if (!tensor.copy_of.empty() || named.empty()) continue;
      const std::optional<Adapter> adapter = Adapter::Of(tensor.name);
      if (adapter && named.size() <= adapter->layer.size()) continue;  // the layer is named
      is_known = true;
      if (const Status fits = CheckFits(tensor, rule, axis); !fits.ok()) return error(fits);
      const auto [known, is_new] = chosen_.try_emplace(tensor.storage, Choice{&rule, axis});
      if (is_new || (known->second.rule->sbp == rule.sbp && known->second.axis == axis)) continue;
      return error(
          InvalidArgument("'{}' is placed otherwise by the rule '{}'; expected one rule "
                          "for each parameter",
                          tensor.name, known->second.rule->ToString()));
    }
    if (is_known) return Status::Ok();
    return error(InvalidArgument("no parameter has this name or lies in a module of this name"));
  }

  // The matrices of LoRA that no rule names lie as the weight does along the dim that they share.
  void PlaceAdapters() {
    for (const ir::StoredTensor& tensor : graph_.tensors()) {
      const std::optional<Adapter> adapter = Adapter::Of(tensor.name);
      if (!adapter || !tensor.copy_of.empty()) continue;
      const ir::StoredTensor* const weight = graph_.FindTensor(adapter->layer + ".weight");
      const auto chosen = weight == nullptr ? chosen_.end() : chosen_.find(weight->storage);
      if (chosen == chosen_.end()) continue;
      const Sbp sbp = chosen->second.rule->sbp;
      if (sbp.is_split() && sbp.dim() == adapter->shared_dim) {
        chosen_.try_emplace(tensor.storage, chosen->second);
      }
    }
  }

  Status CheckFits(const ir::StoredTensor& tensor, const PlacementRule& rule, int axis) const {
    if (!rule.sbp.is_split()) return Status::Ok();
    const int dim = rule.sbp.dim();
    if (dim >= tensor.type.shape.num_dims()) {
      return InvalidArgument("'{}' is {}, which has no dim {}", tensor.name, tensor.type.ToString(),
                             dim);
    }
    const int num_parts = mesh_.axes()[axis].num_parts();
    if (tensor.type.shape.dim(dim) % (num_parts * rule.sbp.groups()) == 0) return Status::Ok();
    return InvalidArgument(
        "'{}' is {}: its dim {} of {} does not divide into {}{} parts along {}: {}{}", tensor.name,
        tensor.type.ToString(), dim, tensor.type.shape.dim(dim),
        rule.sbp.groups() == 1 ? "" : fmt::format("{} groups of ", rule.sbp.groups()), num_parts,
        rule.axis, NearestThatDivide(tensor.type.shape.dim(dim), rule.sbp.groups(), num_parts),
        OtherDims(tensor.type.shape, dim, num_parts));
  }

  // "; or place it S(1)": dims that divide.
  static std::string OtherDims(const Shape& shape, int dim, int num_parts) {
    std::vector<std::string> others;
    for (int other = 0; other < shape.num_dims(); ++other) {
      const bool divides = other != dim && shape.dim(other) % num_parts == 0;
      if (divides) others.push_back(Sbp::S(other).ToString());
    }
    return others.empty() ? "" : fmt::format("; or place it {}", fmt::join(others, " or "));
  }

  // Sums along several axes are computed in rank order, which must be the order of micro-batches.
  Status CheckOrderOfAxes() const {
    for (int axis = 1; axis < mesh_.num_axes(); ++axis) {
      const int before = axis - 1;
      if (!mesh_.IsDataAxis(axis) || mesh_.IsDataAxis(before)) continue;
      return InvalidArgument(
          "mesh({}): the axis {}, whose ranks share micro-batches, stands before {}; expected such "
          "axes last, where their ranks are neighbours",
          mesh_.ToString(), mesh_.axes()[before].name, mesh_.axes()[axis].name);
    }
    return Status::Ok();
  }

  // Whether the model or a rule places a value as parts along the axis.
  bool SplitsValues(const std::string& axis) const {
    for (const auto& section : graph_.sections()) {
      for (const ir::Node* node : section->nodes) {
        if (node->op->traits.kind == ir::OpKind::kPlace &&
            node->attributes.String("axis") == axis && node->attributes.NdSbp("sbp")[0].is_split())
          return true;
      }
    }
    return false;
  }

  // Ranks that all compute the same would be an unintended waste.
  Status CheckEveryAxisSplits() const {
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) {
      if (mesh_.axes()[axis].size == 1 || mesh_.IsDataAxis(axis)) continue;
      const bool splits = std::any_of(chosen_.begin(), chosen_.end(), [&](const auto& entry) {
        return entry.second.axis == axis && entry.second.rule->sbp.is_split();
      });
      const std::string& name = mesh_.axes()[axis].name;
      if (splits || SplitsValues(name)) continue;
      return InvalidArgument(
          "mesh({}): nothing splits a parameter or a value along {}, so its {} ranks would all "
          "compute the same; add rules (PATTERN {}=S(dim)), or use the axis data",
          mesh_.ToString(), name, mesh_.axes()[axis].size, name);
    }
    return Status::Ok();
  }

  void Split(ir::Value* variable, const Choice& choice) {
    NdSbp split = AllBroadcast(mesh_);
    split[choice.axis] = choice.rule->sbp;
    if (variable->producer->attributes.NdSbp("split") == split) return;
    variable->producer->attributes.Set("split", split);
    changed_ = true;
  }

  // The state that an update keeps for each element of a parameter is placed like the parameter.
  Status SplitStates() {
    for (ir::Node* node : graph_.section(ir::SectionKind::kUpdate)->nodes) {
      if (node->op->traits.kind != ir::OpKind::kUpdate) continue;
      const ir::Value& parameter = *node->inputs[0];
      const auto chosen = chosen_.find(node->inputs[0]);
      if (chosen == chosen_.end() || parameter.producer->attributes.NdSbp("split").empty())
        continue;
      if (node->op->traits.needs_whole_tensors) {
        return InvalidArgument(
            "placement rule '{}': {} of '{}' looks at the whole tensor, not at its parts; use an "
            "optimizer that updates each element alone for it, or place it B",
            chosen->second.rule->ToString(), node->op->name, parameter.name);
      }
      // Other states stay whole, whatever their shapes.
      if (StatesOfUpdate(*node->op) != StatesOf::kElements) continue;
      for (size_t i = 2; i < node->inputs.size(); ++i) {
        ir::Value* state = node->inputs[i];
        if (ir::IsVariable(*state) && state->type.shape == parameter.type.shape) {
          Split(state, chosen->second);
        }
      }
    }
    return Status::Ok();
  }

  void SplitTensors() {
    std::map<std::string, NdSbp> splits;
    for (ir::StoredTensor& tensor : graph_.tensors()) {
      tensor.split = tensor.storage->producer->attributes.NdSbp("split");
      if (!tensor.split.empty()) splits[tensor.name] = tensor.split;
    }
    for (ir::StoredTensor& tensor : graph_.tensors()) {
      const auto original = splits.find(tensor.copy_of);
      if (original == splits.end()) continue;
      tensor.split = original->second;
      tensor.storage->producer->attributes.Set("split", original->second);
    }
  }

  ir::Graph& graph_;
  const Mesh& mesh_;
  const std::vector<PlacementRule>& rules_;
  std::map<ir::Value*, Choice> chosen_;  // key: the variable of a parameter
  bool changed_ = false;
};

}  // namespace

StatusOr<bool> PlaceParameters::Run(ir::Graph& graph) const {
  if (graph.is_placed()) return false;
  return Placer(&graph, rules_).Run();
}

}  // namespace zg
