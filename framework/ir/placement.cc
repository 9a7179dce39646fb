#include "framework/ir/placement.h"

#include <algorithm>

#include "framework/base/check.h"

namespace zg::ir {
namespace {

// How much the placements of a node's inputs differ from what a signature wants.
struct Change {
  int inputs = 0;
  double bytes = 0;
  friend bool operator<(const Change& a, const Change& b) {
    return a.inputs != b.inputs ? a.inputs < b.inputs : a.bytes < b.bytes;
  }
};

Change ChangeFor(const Node& node, const SbpSignature& signature, int axis, int num_ranks) {
  Change change;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Sbp from = node.inputs[i]->sbp[axis];
    if (from == signature.inputs[i]) continue;
    ++change.inputs;
    change.bytes +=
        PlacementChangeBytes(from, signature.inputs[i], node.inputs[i]->type.bytes(), num_ranks);
  }
  return change;
}

// Whether every axis can cut its equal parts, as the inputs lie along the others.
bool Divides(const Node& node, const SbpSignature& signature, int axis, const Mesh& mesh) {
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

bool RunsForEveryMicroBatch(const Section& section) {
  return section.kind == SectionKind::kForward || section.kind == SectionKind::kBackward ||
         section.kind == SectionKind::kEval;
}

// Of a boxing op along one of its axes.
SbpSignature BoxingSignature(const Node& node, int axis) {
  const std::vector<SbpSignature> legal = node.op->sbp_signatures(node.Call());
  const auto fits = [&](const SbpSignature& signature) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i]->sbp[axis] != signature.inputs[i]) return false;
    }
    return true;
  };
  const auto found = std::find_if(legal.begin(), legal.end(), fits);
  return found == legal.end() ? legal.front() : *found;
}

void PlaceBoxed(Node* node) {
  NdSbp sbp = node->inputs[0]->sbp;
  for (const int axis : BoxingAxes(*node)) sbp[axis] = BoxingSignature(*node, axis).outputs[0];
  node->outputs[0]->sbp = std::move(sbp);
}

}  // namespace

std::optional<SbpSignature> MicroBatchSignature(const Node& node, int axis, const Mesh& mesh) {
  const OpKind kind = node.op->traits.kind;
  const bool computes = kind == OpKind::kCompute || kind == OpKind::kCast || kind == OpKind::kPack;
  if (!computes || !RunsForEveryMicroBatch(*node.section)) return {};
  if (!mesh.IsDataAxis(axis) || mesh.axes()[axis].size == 1) return {};
  SbpSignature signature;
  // A gradient for which the micro-batches do not differ is a term of each of them, too.
  bool has_terms = kind == OpKind::kPack;
  for (const Value* input : node.inputs) {
    const bool is_term = !input->sbp.empty() && input->sbp[axis].is_partial();
    signature.inputs.push_back(is_term ? Sbp::P() : Sbp::B());
    has_terms = has_terms || is_term;
  }
  signature.outputs.assign(node.outputs.size(), has_terms ? Sbp::P() : Sbp::B());
  return signature;
}

double PlacementChangeBytes(Sbp from, Sbp to, int64_t logical_bytes, int num_ranks) {
  const double total = static_cast<double>(logical_bytes);
  const double others = static_cast<double>(num_ranks - 1) / num_ranks;
  if (from == to) return 0;
  if (from.is_partial()) return to.is_broadcast() ? 2 * total * others : total * others;
  if (!from.is_split() || to.is_partial()) return 0;
  return to.is_broadcast() ? total * others : total / num_ranks * others;
}

SbpSignature ChooseSignature(const Node& node, int axis, const Mesh& mesh,
                             const std::vector<Sbp>* outputs) {
  const int num_ranks = mesh.axes()[axis].size;
  const OpCall call = node.Call();
  std::vector<SbpSignature> candidates;
  if (num_ranks > 1 && node.op->sbp_signatures != nullptr)
    candidates = node.op->sbp_signatures(call);
  if (std::optional<SbpSignature> own = MicroBatchSignature(node, axis, mesh)) {
    candidates.push_back(std::move(*own));
  }
  candidates.push_back({std::vector<Sbp>(node.inputs.size(), Sbp::B()),
                        std::vector<Sbp>(node.outputs.size(), Sbp::B())});
  const SbpSignature* best = nullptr;
  Change best_change;
  for (const SbpSignature& candidate : candidates) {
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

void PlaceOutputs(Node* node, const Mesh& mesh) {
  if (node->op->traits.kind == OpKind::kPlace) {
    node->outputs[0]->sbp = node->attributes.NdSbp("sbp");
    return;
  }
  if (node->op->traits.kind == OpKind::kBoxing) return PlaceBoxed(node);
  for (Value* output : node->outputs) output->sbp = AllBroadcast(mesh);
  if (node->inputs.empty()) return;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const std::vector<Sbp> outputs = ChooseSignature(*node, axis, mesh).outputs;
    for (size_t i = 0; i < outputs.size(); ++i) node->outputs[i]->sbp[axis] = outputs[i];
  }
}

}  // namespace zg::ir
