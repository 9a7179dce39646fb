#include "framework/passes/insert_collectives.h"

#include <algorithm>
#include <unordered_map>

#include "framework/ir/builder.h"
#include "framework/ir/placement.h"
#include "framework/ops/op_names.h"
#include "framework/passes/boxing.h"

namespace zg {
namespace {

// `to`, but along axes of one rank as `from`: every placement is the same there.
NdSbp WhereRanksDiffer(const Mesh& mesh, const NdSbp& from, NdSbp to) {
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (mesh.axes()[axis].size == 1) to[axis] = from[axis];
  }
  return to;
}

// The mesh axes along which a sum is pending in `from` and not in `to`.
std::vector<int64_t> SummedAxes(const NdSbp& from, const NdSbp& to) {
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis].is_partial() && !to[axis].is_partial()) axes.push_back(axis);
  }
  return axes;
}

bool HasGroups(Sbp sbp) { return sbp.is_split() && sbp.groups() > 1; }

// Whether one collective can both sum `value` over `axes` and place it as `to` has it along them:
// as parts of one dim, which no later axis splits already, and, if copies are kept, along the first
// dim that the rank has more than one element of, in equal pieces.
bool CanScatter(const ir::Graph& graph, const ir::Value& value, const NdSbp& to,
                const std::vector<int64_t>& axes) {
  if (std::any_of(axes.begin(), axes.end(), [&](int64_t axis) { return HasGroups(to[axis]); })) {
    return false;
  }
  int dim = -1;
  int64_t last_split = -1;
  int64_t num_ranks = 1;
  bool keeps_copies = false;
  for (const int64_t axis : axes) {
    num_ranks *= graph.mesh().axes()[axis].size;
    if (!to[axis].is_split()) {
      keeps_copies = true;
      continue;
    }
    if (dim >= 0 && to[axis].dim() != dim) return false;
    dim = to[axis].dim();
    if (last_split < 0) last_split = axis;
  }
  if (dim < 0) return false;
  for (size_t axis = last_split; axis < to.size(); ++axis) {
    if (value.sbp[axis] == Sbp::S(dim)) return false;
  }
  const bool divides = graph.LocalType(value).shape.num_elements() % num_ranks == 0;
  return !keeps_copies || (IsFirstLongDim(graph.LocalType(value).shape, dim) && divides);
}

// Makes the node that sums over `axes`, onto an accumulator if `inputs` has one.
ir::Value* Sum(ir::Builder* builder, const std::vector<ir::Value*>& inputs, const NdSbp& to,
               const std::vector<int64_t>& axes, bool in_place, const std::string& name) {
  const auto split =
      std::find_if(axes.begin(), axes.end(), [&](int64_t axis) { return to[axis].is_split(); });
  ir::Attributes attributes = {{"axis", axes[0]}};
  if (axes.size() > 1) attributes = {{"axes", axes}};
  if (split != axes.end()) {
    attributes.Set("dim", int64_t{to[*split].dim()});
    attributes.Set("in_place", in_place);
  }
  ir::Value* sum =
      builder->Op(split == axes.end() ? op_names::kAllReduce : op_names::kReduceScatter, inputs,
                  std::move(attributes), name);
  if (sum == nullptr) return nullptr;
  for (const int64_t axis : axes) sum->sbp[axis] = to[axis];  // some may keep copies
  return sum;
}

// Brings one value to a placement by boxing ops, each along one mesh axis, except that a sum is one
// fold over all its axes.
class Route {
 public:
  Route(ir::Builder* builder, ir::Value* value, const NdSbp& to)
      : builder_(*builder), value_(value), to_(to) {}

  ir::Value* Run() {
    SumUp();
    // If several axes split one dim, the last one cuts finest: splits are added from the first axis
    // on, and removed from the last.
    for (size_t axis = to_.size(); axis-- > 0;) Leave(axis);
    for (size_t axis = 0; axis < to_.size(); ++axis) {
      if (value_ != nullptr && value_->sbp[axis] != to_[axis]) Change(axis, to_[axis]);
    }
    return value_;
  }

 private:
  // Along an axis with fixed parts a sum is one of its own, with which the sum over the others goes
  // on whatever its number of ranks.
  void SumUp() {
    std::vector<int64_t> together;
    for (const int64_t axis : SummedAxes(value_->sbp, to_)) {
      if (builder_.graph().mesh().axes()[axis].has_fixed_parts()) {
        SumOver({axis});
      } else {
        together.push_back(axis);
      }
    }
    SumOver(together);
  }

  void SumOver(const std::vector<int64_t>& axes) {
    if (value_ == nullptr || axes.empty()) return;
    NdSbp summed = to_;
    if (!CanScatter(builder_.graph(), *value_, to_, axes)) {
      for (const int64_t axis : axes) summed[axis] = Sbp::B();
    }
    const bool scatters = std::any_of(axes.begin(), axes.end(),
                                      [&](int64_t axis) { return summed[axis].is_split(); });
    // A full-size gradient that stays resident keeps the rank's part in place; one in flight is
    // released.
    const bool in_place = ir::HoldsGradient(*value_) && !ir::IsInFlight(*value_);
    value_ = Sum(&builder_, {value_}, summed, axes, in_place,
                 value_->name + (scatters ? ".reduce_scatter" : ".all_reduce"));
  }

  // Removes a split of the value that must change, or that blocks an earlier axis.
  void Leave(size_t axis) {
    if (value_ == nullptr || !value_->sbp[axis].is_split()) return;
    const bool changes = value_->sbp[axis] != to_[axis];
    if (!changes && !StandsInTheWay(axis, value_->sbp[axis])) return;
    const bool is_direct = changes && !StandsInTheWay(axis, value_->sbp[axis]) &&
                           !(to_[axis].is_split() && StandsInTheWay(axis, to_[axis]));
    Change(axis, is_direct ? to_[axis] : Sbp::B());
  }

  // Whether an earlier axis has yet to leave or reach the same split.
  bool StandsInTheWay(size_t axis, Sbp split) const {
    for (size_t earlier = 0; earlier < axis; ++earlier) {
      if (value_->sbp[earlier] == to_[earlier]) continue;
      if (value_->sbp[earlier] == split || to_[earlier] == split) return true;
    }
    return false;
  }

  void Change(size_t axis, Sbp to) {
    if (value_ == nullptr) return;
    const Sbp from = value_->sbp[axis];
    if (HasGroups(from)) {
      const bool is_direct = !to.is_split() || (to.dim() != from.dim() && !HasGroups(to));
      const Sbp next = is_direct ? to : Sbp::B();
      ChangeGroups(axis, from, next, next);
      if (!is_direct) Change(axis, to);
      return;
    }
    if (HasGroups(to)) {
      if (from.is_split() && from.dim() == to.dim()) Change(axis, Sbp::B());
      ChangeGroups(axis, to, Sbp::S(to.dim()), to);
      return;
    }
    Boxing boxing = FindBoxing(from, to);
    boxing.attributes.Set("axis", static_cast<int64_t>(axis));
    value_ = builder_.Op(boxing.op, {value_}, std::move(boxing.attributes),
                         value_->name + "." + boxing.op);
  }

  // Moves each group of a split by itself: from or to a plain split of the group.
  void ChangeGroups(size_t axis, Sbp groups, Sbp group_to, Sbp to) {
    if (value_ == nullptr) return;
    const std::string name = value_->name;
    const int64_t dim = groups.dim();
    const int64_t size = value_->type.shape.dim(groups.dim()) / groups.groups();
    std::vector<ir::Value*> parts;
    for (int64_t i = 0; i < groups.groups(); ++i) {
      ir::Value* part = builder_.Op(
          "slice", {value_}, {{"dim", dim}, {"start", i * size}, {"size", size}}, name + ".group");
      if (part != nullptr) {
        NdSbp placed = part->sbp;
        placed[axis] = group_to;
        part = Route(&builder_, part, placed).Run();
      }
      parts.push_back(part);
    }
    value_ = builder_.Op("concat", parts, {{"dim", dim}, {"of_groups", HasGroups(to)}},
                         name + ".groups");
    ZG_CHECK(value_ == nullptr || value_->sbp[axis] == to, "%{}: {} instead of {}", name,
             value_->sbp[axis].ToString(), to.ToString());
  }

  ir::Builder& builder_;
  ir::Value* value_;
  const NdSbp& to_;
};

ir::Value* Box(ir::Builder* builder, ir::Value* value, const NdSbp& to) {
  const NdSbp wanted = WhereRanksDiffer(builder->graph().mesh(), value->sbp, to);
  return Route(builder, value, wanted).Run();
}

ir::Builder BuilderBefore(ir::Graph& graph, ir::Node* node) {
  ir::Builder builder(&graph, node->section);
  builder.InsertBefore(node);
  builder.set_scope(node->scope);
  return builder;
}

Status LowerPlace(ir::Graph& graph, ir::Node* place) {
  ir::Builder builder = BuilderBefore(graph, place);
  ir::Value* boxed = Box(&builder, place->inputs[0], place->attributes.NdSbp("sbp"));
  ZG_RETURN_IF_ERROR(builder.status());
  const bool is_new = boxed != place->inputs[0];
  if (is_new && place->attributes.Bool("copy") &&
      boxed->producer->op->name == op_names::kLocalSlice) {
    boxed->producer->attributes.Set("copy", true);
  }
  graph.ReplaceAllUses(place->outputs[0], boxed);
  graph.Erase(place);
  return Status::Ok();
}

// Makes `node` accumulate a term that is summed over the axes with fixed parts.
Status SumOverParts(ir::Builder* builder, ir::Node* node) {
  ir::Graph& graph = builder->graph();
  const NdSbp& to = node->inputs[0]->sbp;
  ir::Value* const term = node->inputs[1];
  NdSbp summed = term->sbp;
  for (const int64_t axis : SummedAxes(term->sbp, to)) {
    if (graph.mesh().axes()[axis].has_fixed_parts()) summed[axis] = to[axis];
  }
  ir::Value* const sum = Box(builder, term, summed);
  ZG_RETURN_IF_ERROR(builder->status());
  if (sum != term) graph.ReplaceInput(node, 1, sum);
  return Status::Ok();
}

// Returns true if `node` accumulates a partial value and has become a collective.
StatusOr<bool> LowerAccumulate(ir::Graph& graph, ir::Node* node) {
  if (node->op->traits.kind != ir::OpKind::kAccumulate) return false;
  ir::Value* accumulator = node->inputs[0];
  ir::Builder builder = BuilderBefore(graph, node);
  ZG_RETURN_IF_ERROR(SumOverParts(&builder, node));
  ir::Value* const term = node->inputs[1];
  const NdSbp wanted = WhereRanksDiffer(graph.mesh(), term->sbp, accumulator->sbp);
  const std::vector<int64_t> axes = SummedAxes(term->sbp, wanted);
  if (axes.empty()) return false;
  const NdSbp& to = accumulator->sbp;
  const bool scatters =
      std::any_of(axes.begin(), axes.end(), [&](int64_t axis) { return to[axis].is_split(); });
  if (scatters && !CanScatter(graph, *term, to, axes)) {
    return InvalidArgument(
               "accumulate of %{}: got {} on mesh({}), which one sum over all of its axes cannot "
               "bring to {}; expected parts along dim 0, with a number of elements that all ranks "
               "of these axes together divide",
               term->name, ToString(term->sbp), graph.mesh().ToString(), ToString(to))
        .WithContext(node->scope);
  }
  ir::Value* folded =
      Sum(&builder, {term, accumulator}, to, axes, /*in_place=*/false, node->outputs[0]->name);
  ZG_RETURN_IF_ERROR(builder.status());
  graph.ReplaceAllUses(node->outputs[0], folded);
  graph.Erase(node);
  return true;
}

// Values that nodes read in another placement than they are made in. Readers that want the same
// placement share it, within one section; backward also takes the sums of forward, because it would
// otherwise have to keep their terms.
class Boxer {
 public:
  explicit Boxer(ir::Graph* graph) : graph_(*graph) {}

  StatusOr<bool> BoxInputs(ir::Node* node) {
    std::vector<NdSbp> wanted(node->inputs.size());
    for (int axis = 0; axis < graph_.mesh().num_axes(); ++axis) {
      if (graph_.mesh().axes()[axis].size == 1) {  // every placement is the same there
        for (size_t i = 0; i < wanted.size(); ++i) wanted[i].push_back(node->inputs[i]->sbp[axis]);
        continue;
      }
      std::vector<Sbp> outputs;
      for (const ir::Value* output : node->outputs) outputs.push_back(output->sbp[axis]);
      const ir::SbpSignature signature = ir::ChooseSignature(*node, axis, graph_.mesh(), &outputs);
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i].push_back(signature.inputs[i]);
    }
    bool changed = false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (node->inputs[i]->sbp == wanted[i]) continue;
      if (i == 0 && node->op->traits.kind == ir::OpKind::kAccumulate) {
        return InvalidArgument("{} would add to a copy of %{}", node->op->name,
                               node->inputs[0]->name);
      }
      ZG_ASSIGN_OR_RETURN(ir::Value * boxed, BoxedFor(node, node->inputs[i], wanted[i]));
      graph_.ReplaceInput(node, static_cast<int>(i), boxed);
      changed = true;
    }
    return changed;
  }

 private:
  StatusOr<ir::Value*> BoxedFor(ir::Node* reader, ir::Value* value, const NdSbp& to) {
    std::vector<ir::Value*>& known = boxed_[value];
    const auto found = std::find_if(known.begin(), known.end(), [&](const ir::Value* boxed) {
      return boxed->sbp == to && CanShare(*value, *boxed->producer->section, *reader->section);
    });
    if (found != known.end()) return *found;
    ir::Builder builder = BuilderBefore(graph_, reader);
    ir::Value* boxed = Box(&builder, value, to);
    ZG_RETURN_IF_ERROR(builder.status());
    known.push_back(boxed);
    return boxed;
  }

  bool CanShare(const ir::Value& value, const ir::Section& made, const ir::Section& read) const {
    if (&made == &read) return true;
    const bool is_sum =
        std::any_of(value.sbp.begin(), value.sbp.end(), [](Sbp sbp) { return sbp.is_partial(); });
    return is_sum && made.kind == ir::SectionKind::kForward &&
           read.kind == ir::SectionKind::kBackward;
  }

  ir::Graph& graph_;
  std::unordered_map<const ir::Value*, std::vector<ir::Value*>> boxed_;
};

// Along an axis of one rank values are whole, except in memory that is laid out in parts.
bool MakeWhole(ir::Graph& graph) {
  bool changed = false;
  const Mesh& mesh = graph.mesh();
  for (const ir::Node* node : graph.AllNodes()) {
    for (ir::Value* value : node->outputs) {
      for (int axis = 0; axis < mesh.num_axes() && !value->sbp.empty(); ++axis) {
        if (mesh.axes()[axis].size > 1 || value->sbp[axis].is_broadcast()) continue;
        if (ir::IsVariable(*value)) continue;
        value->sbp[axis] = Sbp::B();
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace

StatusOr<bool> InsertCollectives::Run(ir::Graph& graph) const {
  Boxer boxer(&graph);
  bool changed = false;
  for (ir::Node* node : graph.AllNodes()) {
    if (node->op->traits.kind == ir::OpKind::kPlace) {
      ZG_RETURN_IF_ERROR(LowerPlace(graph, node));
      changed = true;
      continue;
    }
    // The input of a boxing op already has the intended placement.
    if (node->op->traits.kind == ir::OpKind::kBoxing) continue;
    ZG_ASSIGN_OR_RETURN(const bool lowered, LowerAccumulate(graph, node));
    changed = changed || lowered;
    if (lowered || node->inputs.empty()) continue;
    ZG_ASSIGN_OR_RETURN(const bool boxed, boxer.BoxInputs(node));
    changed = changed || boxed;
  }
  return MakeWhole(graph) || changed;
}

}  // namespace zg
