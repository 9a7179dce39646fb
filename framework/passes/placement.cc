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

// Whether every axis can cut its equal parts, as the inputs lie along the others.
bool Divides(const ir::Node& node, const ir::SbpSignature& signature, int axis, const Mesh& mesh) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Sbp sbp = signature.inputs[i];
    if (!sbp.is_split()) continue;
    int64_t num_parts = mesh.axes()[axis].size;
    for (int other = 0; other < mesh.num_axes(); ++other) {
      if (other != axis && node.inputs[i]->sbp[other] == sbp) num_parts *= mesh.axes()[other].size;
    }
    if (node.inputs[i]->type.shape.dim(sbp.dim()) % num_parts != 0) return false;
  }
  return true;
}

}  // namespace

ir::SbpSignature ChooseSignature(const ir::Node& node, int axis, const Mesh& mesh,
                                 const std::vector<Sbp>* outputs) {
  const int num_ranks = mesh.axes()[axis].size;
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
    if (!Divides(node, candidate, axis, mesh)) continue;
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
