#include "framework/passes/placement.h"

#include "framework/base/check.h"
#include "framework/passes/boxing.h"

namespace zg {
namespace {

// How much the placements of a node's inputs differ from what a signature wants.
struct Change {
  int inputs = 0;
  double bytes = 0;
  friend bool operator<(const Change& a, const Change& b) {
    return a.inputs != b.inputs ? a.inputs < b.inputs : a.bytes < b.bytes;
  }
};

Change ChangeFor(const ir::Node& node, const ir::SbpSignature& signature, int axis, int num_ranks) {
  Change change;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Sbp from = node.inputs[i]->sbp[axis];
    if (from == signature.inputs[i]) continue;
    ++change.inputs;
    change.bytes +=
        FindBoxing(from, signature.inputs[i], node.inputs[i]->type.bytes(), num_ranks).bytes_sent;
  }
  return change;
}

bool Divides(const ir::OpCall& call, const ir::SbpSignature& signature, int num_ranks) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Sbp sbp = signature.inputs[i];
    if (sbp.is_split() && call.inputs[i].shape.dim(sbp.dim()) % num_ranks != 0) return false;
  }
  return true;
}

}  // namespace

ir::SbpSignature ChooseSignature(const ir::Node& node, int axis, int num_ranks,
                                 const std::vector<Sbp>* outputs) {
  const ir::OpCall call = node.Call();
  std::vector<ir::SbpSignature> candidates;
  if (num_ranks > 1 && node.op->sbp_signatures != nullptr)
    candidates = node.op->sbp_signatures(call);
  candidates.push_back({std::vector<Sbp>(node.inputs.size(), Sbp::B()),
                        std::vector<Sbp>(node.outputs.size(), Sbp::B())});
  const ir::SbpSignature* best = nullptr;
  Change best_change;
  for (const ir::SbpSignature& candidate : candidates) {
    if (outputs != nullptr && candidate.outputs != *outputs) continue;
    if (!Divides(call, candidate, num_ranks)) continue;
    const Change change = ChangeFor(node, candidate, axis, num_ranks);
    if (best == nullptr || change < best_change) {
      best = &candidate;
      best_change = change;
    }
  }
  ZG_CHECK(best != nullptr, "{}: no signature gives the placements of its outputs", node.op->name);
  return *best;
}

}  // namespace zg
