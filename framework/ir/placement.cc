#include "framework/ir/placement.h"

#include <algorithm>
#include <tuple>

#include "framework/base/check.h"

namespace zg::ir {
namespace {

// How much the placements of a node's operands differ from those of a signature.
struct Change {
  int parameters = 0;  // moved split ones, along a shared axis
  int gradients = 0;   // moved gradients of split parameters, which must be placed like these
  int inputs = 0;
  double bytes = 0;
  int terms = 0;  // results that are terms of a sum, along a shared axis
  friend bool operator<(const Change& a, const Change& b) {
    return std::tie(a.parameters, a.gradients, a.inputs, a.bytes, a.terms) <
           std::tie(b.parameters, b.gradients, b.inputs, b.bytes, b.terms);
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

// Whether every axis can cut equal parts, with the inputs placed as `wanted` along the other axes.
bool Divides(const Node& node, const SbpSignature& signature, int axis, const Mesh& mesh,
             const std::vector<NdSbp>& wanted) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Sbp sbp = signature.inputs[i];
    if (!sbp.is_split()) continue;
    const auto parts_along = [&](int along) {
      // What is split already needs no more parts than ranks, such as a bucket with one for each.
      const bool is_split = node.inputs[i]->sbp[along] == sbp;
      return is_split ? mesh.axes()[along].size : mesh.axes()[along].num_parts();
    };
    int64_t num_parts = parts_along(axis);
    for (int other = 0; other < mesh.num_axes(); ++other) {
      if (other != axis && wanted[i][other] == sbp) num_parts *= parts_along(other);
    }
    num_parts *= sbp.groups();
    if (node.inputs[i]->type.shape.dim(sbp.dim()) % num_parts != 0) return false;
  }
  // A reshape may make a dim that divides into one that does not. Along a data axis that stays an
  // error: gathering the micro-batches of other ranks instead would be silent.
  for (size_t i = 0; i < node.outputs.size() && !mesh.IsDataAxis(axis); ++i) {
    const Sbp sbp = signature.outputs[i];
    if (!sbp.is_split()) continue;
    const int64_t num_parts = int64_t{mesh.axes()[axis].size} * sbp.groups();
    if (node.outputs[i]->type.shape.dim(sbp.dim()) % num_parts != 0) return false;
  }
  return signature.units % mesh.axes()[axis].num_parts() == 0;
}

// Whether the signature makes a split in groups. Along a data axis, samples are wanted in plain splits.
bool MakesGroups(const SbpSignature& signature) {
  const auto has_groups = [](Sbp sbp) { return sbp.is_split() && sbp.groups() > 1; };
  return std::any_of(signature.outputs.begin(), signature.outputs.end(), has_groups) &&
         std::none_of(signature.inputs.begin(), signature.inputs.end(), has_groups);
}

// Whether a bucket is placed like its gradients. Pending sums stay so beside gradients that all ranks
// have, which become terms of a sum as well: another bucket may have the same gradients without
// these, and the order of the sum is not to depend on that.
bool PlacesGradients(const Node& pack, const SbpSignature& signature, int axis) {
  const bool has_splits = !pack.attributes.NdSbp("splits").empty();
  if (has_splits) return signature.outputs[0].is_split();
  const bool has_terms =
      std::any_of(pack.inputs.begin(), pack.inputs.end(),
                  [&](const Value* gradient) { return gradient->sbp[axis].is_partial(); });
  return signature.outputs[0].is_partial() == has_terms;
}

// Whether a shared axis makes the changes that a signature asks for by itself: see ChooseSignature.
bool FollowsFromPlacements(const Node& node, const SbpSignature& signature, int axis) {
  if (node.op->traits.kind == OpKind::kPack) return PlacesGradients(node, signature, axis);
  bool is_split_already = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Sbp from = node.inputs[i]->sbp[axis];
    is_split_already = is_split_already || (!from.is_broadcast() && from == signature.inputs[i]);
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Sbp from = node.inputs[i]->sbp[axis];
    const Sbp to = signature.inputs[i];
    if (from == to || to.is_broadcast()) continue;
    if (!is_split_already) return false;
    // A bias is added to the terms of a product; other addends wait for the sum.
    if (to.is_partial() && (node.op->traits.is_elementwise || !HoldsParameter(*node.inputs[i]))) {
      return false;
    }
  }
  return true;
}

// Whether all-B is legal: not for a bucket of parts along the axis that has them.
bool MayBeWhole(const Node& node, int axis, const Mesh& mesh) {
  if (node.op->traits.kind != OpKind::kPack || mesh.IsDataAxis(axis)) return true;
  return mesh.axes()[axis].num_parts() == 1 || node.attributes.NdSbp("splits").empty();
}

// The number of parameters that would have to be moved.
int NumParametersMoved(const Node& node, const SbpSignature& signature, int axis) {
  int moved = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Sbp from = node.inputs[i]->sbp[axis];
    if (from.is_split() && from != signature.inputs[i] && HoldsParameter(*node.inputs[i])) ++moved;
  }
  return moved;
}

int NumGradientsMoved(const Node& node, const SbpSignature& signature) {
  int moved = 0;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Sbp wanted = WantedByParameter(*node.outputs[i]);
    if (wanted.is_split() && wanted != signature.outputs[i]) ++moved;
  }
  return moved;
}

bool RunsForEveryMicroBatch(const Section& section) {
  return section.kind == SectionKind::kForward || section.kind == SectionKind::kBackward ||
         section.kind == SectionKind::kEval;
}

// The signature of a boxing op along one of its axes.
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

// The best signature along one axis, with the inputs placed as `wanted` along the other axes. With
// `outputs`, only signatures that give these.
SbpSignature BestAlong(int axis, const Node& node, const Mesh& mesh,
                       const std::vector<NdSbp>& wanted, const std::vector<Sbp>* outputs) {
  // The choice follows from the number of parts, so that it is the same for any number of ranks.
  const int num_parts = mesh.axes()[axis].num_parts();
  std::vector<SbpSignature> candidates;
  // Ranks that share micro-batches hand out whole results.
  const bool is_whole = node.op->traits.kind == OpKind::kOutput && !mesh.IsDataAxis(axis);
  if (num_parts > 1 && !is_whole) candidates = SignaturesOf(node, axis);
  if (std::optional<SbpSignature> own = MicroBatchSignature(node, axis, mesh)) {
    candidates.push_back(std::move(*own));
  }
  if (MayBeWhole(node, axis, mesh)) {
    candidates.push_back({std::vector<Sbp>(node.inputs.size(), Sbp::B()),
                          std::vector<Sbp>(node.outputs.size(), Sbp::B())});
  }
  const bool is_shared = num_parts > 1 && !mesh.IsDataAxis(axis);
  std::optional<SbpSignature> best;
  Change best_change;
  for (SbpSignature& candidate : candidates) {
    if (outputs != nullptr && candidate.outputs != *outputs) continue;
    if (!Divides(node, candidate, axis, mesh, wanted)) continue;
    if (mesh.IsDataAxis(axis) && MakesGroups(candidate)) continue;
    if (is_shared && !FollowsFromPlacements(node, candidate, axis)) continue;
    Change change = ChangeFor(node, candidate, axis, num_parts);
    if (is_shared) {
      change.parameters = NumParametersMoved(node, candidate, axis);
      change.gradients = NumGradientsMoved(node, candidate);
      change.terms =
          static_cast<int>(std::count_if(candidate.outputs.begin(), candidate.outputs.end(),
                                         [](Sbp sbp) { return sbp.is_partial(); }));
    }
    if (best && !(change < best_change)) continue;
    best = std::move(candidate);
    best_change = change;
  }
  ZG_CHECK(best, "{}: no signature gives the placements of its outputs", node.op->name);
  return *std::move(best);
}

}  // namespace

std::optional<SbpSignature> MicroBatchSignature(const Node& node, int axis, const Mesh& mesh) {
  const OpKind kind = node.op->traits.kind;
  const bool computes = kind == OpKind::kCompute || kind == OpKind::kView ||
                        kind == OpKind::kCast || kind == OpKind::kPack;
  if (!computes || !RunsForEveryMicroBatch(*node.section)) return {};
  if (!mesh.IsDataAxis(axis) || mesh.axes()[axis].size == 1) return {};
  SbpSignature signature;
  // A gradient that is the same for all micro-batches is also a term of each of them, and each draws
  // random numbers of its own.
  bool has_terms = kind == OpKind::kPack || node.op->traits.is_random;
  for (const Value* input : node.inputs) {
    const bool is_term = !input->sbp.empty() && input->sbp[axis].is_partial();
    signature.inputs.push_back(is_term ? Sbp::P() : Sbp::B());
    has_terms = has_terms || is_term;
  }
  signature.outputs.assign(node.outputs.size(), has_terms ? Sbp::P() : Sbp::B());
  return signature;
}

std::vector<SbpSignature> SignaturesOf(const Node& node, int axis) {
  if (node.op->sbp_signatures == nullptr) return {};
  std::vector<SbpSignature> signatures = node.op->sbp_signatures(node.Call());
  int groups = 1;
  for (const Value* input : node.inputs) {
    if (!input->sbp.empty() && input->sbp[axis].is_split()) {
      groups = std::max(groups, input->sbp[axis].groups());
    }
  }
  if (groups == 1 || !node.op->traits.keeps_groups) return signatures;
  const auto grouped = [groups](Sbp sbp) {
    return sbp.is_split() ? Sbp::S(sbp.dim(), groups) : sbp;
  };
  const size_t num_plain = signatures.size();
  for (size_t i = 0; i < num_plain; ++i) {
    SbpSignature signature = signatures[i];
    std::transform(signature.inputs.begin(), signature.inputs.end(), signature.inputs.begin(),
                   grouped);
    std::transform(signature.outputs.begin(), signature.outputs.end(), signature.outputs.begin(),
                   grouped);
    signatures.push_back(std::move(signature));
  }
  return signatures;
}

double PlacementChangeBytes(Sbp from, Sbp to, int64_t logical_bytes, int num_ranks) {
  const double total = static_cast<double>(logical_bytes);
  const double others = static_cast<double>(num_ranks - 1) / num_ranks;
  if (from == to) return 0;
  if (from.is_partial()) return to.is_broadcast() ? 2 * total * others : total * others;
  if (!from.is_split() || to.is_partial()) return 0;
  return to.is_broadcast() ? total * others : total / num_ranks * others;
}

// The axes choose in their order, and each knows the inputs' placements along those before it: a dim
// divides by all axes together that split it.
SbpSignature ChooseSignature(const Node& node, int axis, const Mesh& mesh,
                             const std::vector<Sbp>* outputs) {
  std::vector<NdSbp> wanted;
  for (const Value* input : node.inputs) wanted.push_back(input->sbp);
  for (int earlier = 0; earlier < axis; ++earlier) {
    if (outputs != nullptr && mesh.axes()[earlier].size == 1) continue;  // nothing is moved there
    std::vector<Sbp> kept;
    for (const Value* output : node.outputs) {
      if (outputs != nullptr) kept.push_back(output->sbp[earlier]);
    }
    const SbpSignature best =
        BestAlong(earlier, node, mesh, wanted, outputs != nullptr ? &kept : nullptr);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i][earlier] = best.inputs[i];
  }
  return BestAlong(axis, node, mesh, wanted, outputs);
}

Sbp WantedByParameter(const Value& value) {
  const Value* gradient = &value;
  while (gradient->users.size() == 1) {
    const Node& user = *gradient->users[0];
    if (user.op->traits.kind == OpKind::kPack) {
      const NdSbp& splits = user.attributes.NdSbp("splits");
      const auto use = std::find(user.inputs.begin(), user.inputs.end(), gradient);
      return splits.empty() ? Sbp::B() : splits[use - user.inputs.begin()];
    }
    const bool keeps_elements =
        user.op->traits.kind == OpKind::kCast || user.op->traits.is_elementwise;
    if (!keeps_elements || user.outputs[0]->type.shape != value.type.shape) break;
    gradient = user.outputs[0];
  }
  return Sbp::B();
}

bool HoldsParameter(const Value& value) {
  const Node& node = *value.producer;
  switch (node.op->traits.kind) {
    case OpKind::kVariable:
      return IsOfModel(RoleOf(value));
    case OpKind::kView:
    case OpKind::kCast:
    case OpKind::kPlace:
    case OpKind::kBoxing:
      return HoldsParameter(*node.inputs[0]);
    default:
      return false;
  }
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
