#include "framework/passes/ambiguous_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/ir/placement.h"

namespace zg {
namespace {

bool SplitAlike(const std::vector<Sbp>& a, const std::vector<Sbp>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Sbp of_a, Sbp of_b) {
    return of_a == of_b || (!of_a.is_split() && !of_b.is_split());
  });
}

bool HaveSameOutcome(const ir::SbpSignature& a, const ir::SbpSignature& b) {
  return a.outputs == b.outputs && SplitAlike(a.inputs, b.inputs);
}

// "{S(0), B}".
std::string Text(const std::vector<Sbp>& placements) {
  std::vector<std::string> texts;
  for (const Sbp sbp : placements) texts.push_back(sbp.ToString());
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

// "%x S(0), %y S(1)".
std::string Inputs(const ir::Node& node, int axis) {
  std::vector<std::string> texts;
  for (const ir::Value* input : node.inputs) {
    texts.push_back(fmt::format("%{} {}", input->name, input->sbp[axis].ToString()));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Status CheckUnambiguous(const ir::Graph& graph, const ir::Node& node) {
  const ir::OpKind kind = node.op->traits.kind;
  if (node.inputs.empty() || kind == ir::OpKind::kPlace || kind == ir::OpKind::kBoxing) {
    return Status::Ok();
  }
  const Mesh& mesh = graph.mesh();
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (mesh.axes()[axis].num_parts() == 1 || mesh.IsDataAxis(axis)) continue;
    const std::vector<ir::SbpSignature> best = ir::BestSignatures(node, axis, mesh);
    std::vector<std::string> choices;
    for (const ir::SbpSignature& signature : best) {
      const bool is_first = &signature == &best.front();
      if (!is_first && HaveSameOutcome(best.front(), signature)) continue;
      choices.push_back(Text(signature.inputs) + " -> " + Text(signature.outputs));
    }
    if (choices.size() == 1) continue;
    return InvalidArgument(
               "{} of {} can lie along {} as {}, which move as many bytes; place one of its inputs as "
               "it lies in the one that you want: with a rule for the module that gives it, 'MODULE -> "
               "{}=S(DIM)', or with zg::place(x, \"{}\", zg::Sbp::S(DIM)) in the model",
               node.op->name, Inputs(node, axis), mesh.axes()[axis].name,
               fmt::join(choices, " or as "), mesh.axes()[axis].name, mesh.axes()[axis].name)
        .WithContext(node.scope);
  }
  return Status::Ok();
}

}  // namespace zg
