#include "framework/passes/place_results.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/ir/builder.h"
#include "framework/ir/placement.h"
#include "framework/ir/scope_pattern.h"
#include "framework/passes/dividing_sizes.h"

namespace zg {
namespace {

// The readers of a value outside of the module, in its section and, for forward, also in backward.
// In backward, readers that compute gradients of the module itself do not count.
std::vector<ir::Node*> ReadersOutside(const ir::Value& value, const ScopePattern& pattern) {
  const std::string_view module = pattern.ModuleOf(value.producer->scope);
  const ir::Section* const section = value.producer->section;
  std::vector<ir::Node*> readers;
  for (ir::Node* user : value.users) {
    const bool is_in_backward = section->kind == ir::SectionKind::kForward &&
                                user->section->kind == ir::SectionKind::kBackward;
    if (user->section != section && !is_in_backward) continue;
    if (pattern.ModuleOf(user->scope) == module) continue;
    if (std::find(readers.begin(), readers.end(), user) == readers.end()) readers.push_back(user);
  }
  return readers;
}

bool IsReadInItsSection(const ir::Value& value, const std::vector<ir::Node*>& readers) {
  return std::any_of(readers.begin(), readers.end(), [&](const ir::Node* reader) {
    return reader->section == value.producer->section;
  });
}

Status CheckFits(const ir::Value& value, const PlacementRule& rule, const MeshAxis& axis) {
  if (!rule.sbp.is_split()) return Status::Ok();
  const Shape& shape = value.type.shape;
  const int dim = rule.sbp.dim();
  if (dim < shape.num_dims() && shape.dim(dim) % axis.num_parts() == 0) return Status::Ok();
  const std::string what =
      fmt::format("placement rule '{}': %{}, {} of a micro-batch in {}", rule.ToString(),
                  value.name, value.type.ToString(), value.producer->scope);
  if (dim >= shape.num_dims()) return InvalidArgument("{}, has no dim {}", what, dim);
  return InvalidArgument("{}: its dim {} of {} does not divide into {} parts along {}: {}", what,
                         dim, shape.dim(dim), axis.num_parts(), axis.name,
                         NearestThatDivide(shape.dim(dim), 1, axis.num_parts()));
}

// Whether the value is such a `place`.
bool IsPlaced(const ir::Value& value, const std::string& axis, Sbp sbp) {
  const ir::Node& node = *value.producer;
  return node.op->traits.kind == ir::OpKind::kPlace && node.attributes.String("axis") == axis &&
         node.attributes.NdSbp("sbp") == NdSbp{sbp};
}

// Whether the rule names a module with a result in the section. Eval programs have other shapes
// than training, such as one token: a value that does not divide is whole there, so that sums are
// computed in the same places, and have the same bits.
StatusOr<bool> Apply(ir::Graph& graph, ir::Section* section, const PlacementRule& rule, int axis,
                     bool* changed) {
  ZG_ASSIGN_OR_RETURN(const ScopePattern pattern, ScopePattern::Parse(rule.pattern));
  const bool is_eval = section->kind == ir::SectionKind::kEval;
  bool is_known = false;
  for (ir::Node* node : std::vector<ir::Node*>(section->nodes)) {
    if (pattern.ModuleOf(node->scope).empty()) continue;
    for (ir::Value* value : node->outputs) {
      const std::vector<ir::Node*> readers = ReadersOutside(*value, pattern);
      if (!IsFloat(value->type.dtype) || !IsReadInItsSection(*value, readers)) continue;
      if (ir::HoldsParameter(*value)) continue;  // the value is in another dtype
      is_known = true;
      if (graph.mesh().axes()[axis].num_parts() == 1) continue;
      const Status fits = CheckFits(*value, rule, graph.mesh().axes()[axis]);
      if (!is_eval) ZG_RETURN_IF_ERROR(fits);
      const Sbp sbp = fits.ok() ? rule.sbp : Sbp::B();
      if (IsPlaced(*value, rule.axis, sbp)) continue;
      ir::Builder builder(&graph, section);
      builder.InsertBefore(graph.NextOf(node));
      builder.set_scope(node->scope);
      ir::Value* placed = builder.Op("place", {value}, {{"sbp", NdSbp{sbp}}, {"axis", rule.axis}},
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
  if (graph.is_placed()) return false;
  bool changed = false;
  for (const PlacementRule& rule : rules_) {
    if (rule.of != PlacementRule::Of::kResults) continue;
    ZG_ASSIGN_OR_RETURN(const int axis, SharedAxisOf(rule, graph.mesh()));
    bool is_known = false;
    for (const auto& section : graph.sections()) {
      const ir::SectionKind kind = section->kind;
      if (kind != ir::SectionKind::kForward && kind != ir::SectionKind::kEval) continue;
      ZG_ASSIGN_OR_RETURN(const bool is_known_here,
                          Apply(graph, section.get(), rule, axis, &changed));
      is_known = is_known || is_known_here;
    }
    if (is_known) continue;
    return InvalidArgument(
        "placement rule '{}': no module of this name gives floating-point values to others",
        rule.ToString());
  }
  return changed;
}

}  // namespace zg
