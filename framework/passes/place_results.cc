#include "framework/passes/place_results.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/ir/builder.h"
#include "framework/ir/placement.h"
#include "framework/ir/scope_pattern.h"

namespace zg {
namespace {

// The readers of a value in forward and backward that lie outside of the module; of those in backward,
// that compute gradients of the module itself, none.
std::vector<ir::Node*> ReadersOutside(const ir::Value& value, const ScopePattern& pattern) {
  const std::string_view module = pattern.ModuleOf(value.producer->scope);
  std::vector<ir::Node*> readers;
  for (ir::Node* user : value.users) {
    const ir::SectionKind kind = user->section->kind;
    if (kind != ir::SectionKind::kForward && kind != ir::SectionKind::kBackward) continue;
    if (pattern.ModuleOf(user->scope) == module) continue;
    if (std::find(readers.begin(), readers.end(), user) == readers.end()) readers.push_back(user);
  }
  return readers;
}

bool IsReadInForward(const std::vector<ir::Node*>& readers) {
  return std::any_of(readers.begin(), readers.end(), [](const ir::Node* reader) {
    return reader->section->kind == ir::SectionKind::kForward;
  });
}

Status CheckFits(const ir::Value& value, const PlacementRule& rule, const MeshAxis& axis) {
  if (!rule.sbp.is_split()) return Status::Ok();
  const Shape& shape = value.type.shape;
  const int dim = rule.sbp.dim();
  if (dim < shape.num_dims() && shape.dim(dim) % axis.size == 0) return Status::Ok();
  return InvalidArgument(
      "placement rule '{}': %{}, {} of a micro-batch in {}, has no dim {} that divides into {} parts",
      rule.ToString(), value.name, value.type.ToString(), value.producer->scope, dim, axis.size);
}

// Whether the value is a request that the rule would make.
bool IsPlaced(const ir::Value& value, const PlacementRule& rule) {
  const ir::Node& node = *value.producer;
  return node.op->traits.kind == ir::OpKind::kPlace &&
         node.attributes.String("axis") == rule.axis &&
         node.attributes.NdSbp("sbp") == NdSbp{rule.sbp};
}

// Whether the rule names a module that gives something.
StatusOr<bool> Apply(ir::Graph& graph, const PlacementRule& rule, int axis, bool* changed) {
  ZG_ASSIGN_OR_RETURN(const ScopePattern pattern, ScopePattern::Parse(rule.pattern));
  bool is_known = false;
  ir::Section* forward = graph.section(ir::SectionKind::kForward);
  for (ir::Node* node : std::vector<ir::Node*>(forward->nodes)) {
    if (pattern.ModuleOf(node->scope).empty()) continue;
    for (ir::Value* value : node->outputs) {
      const std::vector<ir::Node*> readers = ReadersOutside(*value, pattern);
      if (!IsFloat(value->type.dtype) || !IsReadInForward(readers)) continue;
      if (ir::HoldsParameter(*value)) continue;  // in another dtype
      is_known = true;
      if (graph.mesh().axes()[axis].size == 1 || IsPlaced(*value, rule)) continue;
      ZG_RETURN_IF_ERROR(CheckFits(*value, rule, graph.mesh().axes()[axis]));
      ir::Builder builder(&graph, forward);
      builder.InsertBefore(graph.NextOf(node));
      builder.set_scope(node->scope);
      ir::Value* placed =
          builder.Op("place", {value}, {{"sbp", NdSbp{rule.sbp}}, {"axis", rule.axis}},
                     value->name + ".placed");
      ZG_RETURN_IF_ERROR(builder.status());
      for (ir::Node* reader : readers) {
        for (size_t i = 0; i < reader->inputs.size(); ++i) {
          if (reader->inputs[i] == value) graph.ReplaceInput(reader, static_cast<int>(i), placed);
        }
      }
      *changed = true;
    }
  }
  return is_known;
}

}  // namespace

StatusOr<bool> PlaceResults::Run(ir::Graph& graph) const {
  if (graph.is_placed() || graph.section(ir::SectionKind::kForward)->nodes.empty()) return false;
  bool changed = false;
  for (const PlacementRule& rule : rules_) {
    if (rule.of != PlacementRule::Of::kResults) continue;
    ZG_ASSIGN_OR_RETURN(const int axis, SharedAxisOf(rule, graph.mesh()));
    ZG_ASSIGN_OR_RETURN(const bool is_known, Apply(graph, rule, axis, &changed));
    if (is_known) continue;
    return InvalidArgument(
        "placement rule '{}': no module of this name gives floating-point values to others in "
        "training",
        rule.ToString());
  }
  return changed;
}

}  // namespace zg
