#include "framework/ir/verify_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "framework/ir/node_error.h"
#include "framework/ir/placement.h"

namespace zg::ir {
namespace {

std::string ToString(const SbpSignature& signature) {
  const auto join = [](const std::vector<Sbp>& sbp) {
    std::vector<std::string> parts;
    for (Sbp one : sbp) parts.push_back(one.ToString());
    return fmt::format("({})", fmt::join(parts, ", "));
  };
  return fmt::format("{} -> {}", join(signature.inputs), join(signature.outputs));
}

class CollectivesVerifier {
 public:
  explicit CollectivesVerifier(const Graph& graph) : graph_(graph) {}

  Status Run() {
    for (const Node* node : graph_.AllNodes()) {
      ZG_RETURN_IF_ERROR(CheckSignature(*node));
      ZG_RETURN_IF_ERROR(CheckReadsDone(*node));
    }
    return Status::Ok();
  }

 private:
  // Only waits read values in flight; they may also be assigned to a variable.
  Status CheckReadsDone(const Node& node) {
    const OpKind kind = node.op->traits.kind;
    if (kind == OpKind::kWait || kind == OpKind::kAssign) return Status::Ok();
    for (const Value* input : node.inputs) {
      if (!IsStart(*input->producer)) continue;
      return NodeError(node, "it reads %{}, whose transfer has only been started; wait for it",
                       input->name);
    }
    return Status::Ok();
  }

  Status CheckSignature(const Node& node) {
    if (node.op->traits.kind == OpKind::kPlace) {
      return NodeError(node, "expected no place after the collectives are inserted");
    }
    if (node.inputs.empty()) return Status::Ok();  // the placement of a source is given
    if (node.op->traits.kind == OpKind::kWait) return CheckWait(node);
    const Mesh& mesh = graph_.mesh();
    std::vector<bool> is_boxed(mesh.num_axes());
    const bool is_boxing = node.op->traits.kind == OpKind::kBoxing;
    if (is_boxing) {
      int last = -1;
      for (const int axis : BoxingAxes(node)) {
        if (axis < 0 || axis >= mesh.num_axes()) {
          return NodeError(node, "got axis {}, expected one of the {} of mesh({})", axis,
                           mesh.num_axes(), mesh.ToString());
        }
        if (axis <= last) return NodeError(node, "got axes that do not ascend");
        is_boxed[axis] = true;
        last = axis;
      }
    }
    const bool is_joint = is_boxing && BoxingAxes(node).size() > 1;
    for (int axis = 0; axis < mesh.num_axes(); ++axis) {
      if (is_boxed[axis]) ZG_RETURN_IF_ERROR(CheckNesting(node, axis, is_boxed));
      if (is_joint && is_boxed[axis] && KeepsCopies(node, axis)) continue;
      if (mesh.axes()[axis].has_fixed_parts() && mesh.axes()[axis].size == 1) continue;
      ZG_RETURN_IF_ERROR(is_boxing && !is_boxed[axis] ? CheckSamePlacement(node, axis)
                                                      : CheckAxis(node, axis));
    }
    return Status::Ok();
  }

  // For a sum over several axes: one along which every rank receives the whole.
  bool KeepsCopies(const Node& node, int axis) const {
    const SbpSignature got = PlacementsAlong(node, axis);
    const bool accumulates_whole = got.inputs.size() == 1 || got.inputs[1].is_broadcast();
    return got.inputs[0].is_partial() && accumulates_whole && got.outputs[0].is_broadcast();
  }

  // If two axes split one dim, the later one cuts the parts of the earlier. So the earlier one
  // cannot change while the later one stays: the parts would be on other ranks.
  Status CheckNesting(const Node& node, int axis, const std::vector<bool>& is_boxed) {
    for (const Value* value : {node.inputs[0], node.outputs[0]}) {
      const Sbp sbp = value->sbp[axis];
      for (int inner = axis + 1; inner < graph_.mesh().num_axes(); ++inner) {
        if (is_boxed[inner] || !sbp.is_split() || value->sbp[inner] != sbp) continue;
        return NodeError(node,
                         "it changes the placement {} of %{} along axis {}, expected no later axis "
                         "that splits the same dim; change axis {} first",
                         ToString(value->sbp), value->name, graph_.mesh().axes()[axis].name,
                         graph_.mesh().axes()[inner].name);
      }
    }
    return Status::Ok();
  }

  SbpSignature PlacementsAlong(const Node& node, int axis) const {
    SbpSignature placements;
    for (const Value* input : node.inputs) {
      placements.inputs.push_back(input->sbp.empty() ? Sbp::B() : input->sbp[axis]);
    }
    for (const Value* output : node.outputs) {
      placements.outputs.push_back(output->sbp.empty() ? Sbp::B() : output->sbp[axis]);
    }
    return placements;
  }

  // A boxing op leaves the axes alone that it does not work along.
  Status CheckSamePlacement(const Node& node, int axis) {
    const SbpSignature got = PlacementsAlong(node, axis);
    const auto differs = [&](Sbp sbp) { return sbp != got.inputs[0]; };
    if (std::none_of(got.inputs.begin(), got.inputs.end(), differs) &&
        std::none_of(got.outputs.begin(), got.outputs.end(), differs)) {
      return Status::Ok();
    }
    return NodeError(node, "along axis {}: got {}, expected the same placement everywhere",
                     graph_.mesh().axes()[axis].name, ToString(got));
  }

  Status CheckWait(const Node& node) {
    const Value& awaited = *node.inputs[0];
    if (StartsOf(node).empty()) {
      return NodeError(node, "it waits for %{}, which no transfer that was started writes to",
                       awaited.name);
    }
    if (node.outputs[0]->sbp == awaited.sbp) return Status::Ok();
    return NodeError(node, "got placement {}, expected that of %{}, {}",
                     zg::ToString(node.outputs[0]->sbp), awaited.name, zg::ToString(awaited.sbp));
  }

  Status CheckAxis(const Node& node, int axis) {
    const SbpSignature got = PlacementsAlong(node, axis);
    std::vector<SbpSignature> legal = SignaturesOf(node, axis);
    if (node.op->traits.kind != OpKind::kBoxing) {
      legal.push_back({std::vector<Sbp>(got.inputs.size(), Sbp::B()),
                       std::vector<Sbp>(got.outputs.size(), Sbp::B())});
    }
    const std::optional<SbpSignature> own = MicroBatchSignature(node, axis, graph_.mesh());
    if (own.has_value() && own->outputs[0].is_partial()) legal.push_back(*own);
    for (const SbpSignature& signature : legal) {
      if (signature.inputs == got.inputs && signature.outputs == got.outputs) return Status::Ok();
    }
    std::vector<std::string> expected;
    for (const SbpSignature& signature : legal) expected.push_back(ToString(signature));
    return NodeError(node, "along axis {}: got {}, expected {}", graph_.mesh().axes()[axis].name,
                     ToString(got), fmt::join(expected, " or "));
  }

  const Graph& graph_;
};

}  // namespace

Status VerifyCollectives(const Graph& graph) { return CollectivesVerifier(graph).Run(); }

}  // namespace zg::ir
