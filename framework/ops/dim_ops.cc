#include "framework/ops/dim_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const InputNames kX = {"x"};

// Splits along every dim except `dim`.
Signatures SplitOthers(const ir::OpCall& call, int64_t dim) {
  Signatures signatures;
  for (int other = 0; other < call.inputs[0].shape.num_dims(); ++other) {
    if (other == dim) continue;
    signatures.push_back({std::vector<Sbp>(call.inputs.size(), Sbp::S(other)), {Sbp::S(other)}});
  }
  signatures.push_back({std::vector<Sbp>(call.inputs.size(), Sbp::P()), {Sbp::P()}});
  return signatures;
}

Status CheckDim(const ir::OpCall& call, const InputNames& names) {
  const int64_t dim = call.attributes.Int("dim");
  if (dim >= 0 && dim < call.inputs[0].shape.num_dims()) return Status::Ok();
  return Rejected(call, names, fmt::format("got dim {}, expected one of its dims", dim));
}

StatusOr<Types> SliceType(const ir::OpCall& call) {
  ZG_RETURN_IF_ERROR(CheckDim(call, kX));
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  const int64_t start = call.attributes.Int("start");
  const int64_t size = call.attributes.Int("size");
  const int64_t step = call.attributes.Int("step");
  TensorType y = call.inputs[0];
  const int64_t available = y.shape.dim(dim);
  const bool fits = start >= 0 && size >= 0 && step >= 1 &&
                    (size == 0 ? start <= available
                               : start < available && (available - 1 - start) / step >= size - 1);
  if (!fits) {
    return Rejected(
        call, kX,
        fmt::format("dim {} has no {} elements from {} on in steps of {}", dim, size, start, step));
  }
  y.shape.set_dim(dim, size);
  return Types{y};
}

// If `part` elements of a dim of `whole` are one of its equal groups, such as q of [q | k | v], a
// split of each group of the whole is a split of that group.
struct Group {
  int dim = 0;
  int64_t part = 0;
  int64_t whole = 0;
  int64_t start = 0;
  int64_t step = 1;

  bool is_one() const {
    const bool divides = part > 0 && part < whole && whole % part == 0 && start % part == 0;
    return divides && step == 1 && whole / part <= std::numeric_limits<int>::max();
  }
  Sbp SplitOfWhole() const { return Sbp::S(dim, static_cast<int>(whole / part)); }
  Sbp SplitOfPart() const { return Sbp::S(dim); }
};

Group SlicedGroup(const ir::OpCall& call) {
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  return {dim, call.attributes.Int("size"), call.inputs[0].shape.dim(dim),
          call.attributes.Int("start"), call.attributes.Int("step")};
}

Group PaddedGroup(const ir::OpCall& call) {
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  const int64_t part = call.inputs[0].shape.dim(dim);
  const int64_t before = call.attributes.Int("before");
  return {dim, part, before + part + call.attributes.Int("after"), before,
          call.attributes.Int("step")};
}

// Scales attributes that count elements along `dim` to a rank's part of it.
void ScaleToPart(std::initializer_list<const char*> attributes, const ir::OpCall& logical,
                 ir::OpCall* local) {
  const int dim = static_cast<int>(logical.attributes.Int("dim"));
  const int64_t size = logical.inputs[0].shape.dim(dim);
  const int64_t own = local->inputs[0].shape.dim(dim);
  if (own == size) return;
  for (const char* attribute : attributes) {
    local->attributes.Set(attribute, logical.attributes.Int(attribute) / (size / own));
  }
}

// The gradients of slices that lie side by side are put side by side: to pad each of n slices to the
// whole, and to add those, takes time for n wholes.
std::vector<ir::Value*> AddSliceGradients(ir::Builder& builder,
                                          const std::vector<ir::Value*>& gradients) {
  struct Run {  // of slices, each of which begins where the one before ends
    int64_t dim = 0;
    int64_t begin = 0;
    int64_t end = 0;
    std::vector<ir::Value*> parts;
    ir::Value* padded = nullptr;  // the first part
  };
  std::vector<Run> slices;
  for (ir::Value* gradient : gradients) {
    const ir::Node& pad = *gradient->producer;
    ir::Value* const part = pad.inputs[0];
    const int64_t dim = pad.attributes.Int("dim");
    const int64_t begin = pad.attributes.Int("before");
    const int64_t size = part->type.shape.dim(static_cast<int>(dim));
    slices.push_back({dim, begin, begin + size, {part}, gradient});
  }
  std::stable_sort(slices.begin(), slices.end(), [](const Run& a, const Run& b) {
    return std::pair(a.dim, a.begin) < std::pair(b.dim, b.begin);
  });
  std::vector<Run> runs;
  for (const Run& slice : slices) {
    const auto before = std::find_if(runs.begin(), runs.end(), [&](const Run& run) {
      return run.dim == slice.dim && run.end == slice.begin;
    });
    if (before == runs.end()) {
      runs.push_back(slice);
    } else {
      before->end = slice.end;
      before->parts.push_back(slice.parts[0]);
    }
  }
  std::vector<ir::Value*> sums;
  for (const Run& run : runs) {
    ir::Value* sum = run.padded;
    if (run.parts.size() > 1) {
      const int64_t size = run.padded->type.shape.dim(static_cast<int>(run.dim));
      sum = builder.Op("concat", run.parts, {{"dim", run.dim}, {"of_groups", true}});
      if (run.end - run.begin < size) {
        sum = builder.Op("pad", {sum},
                         {{"dim", run.dim}, {"before", run.begin}, {"after", size - run.end}});
      }
    }
    sums.push_back(sum);
  }
  return sums;
}

StatusOr<Types> PadType(const ir::OpCall& call) {
  ZG_RETURN_IF_ERROR(CheckDim(call, kX));
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  const int64_t before = call.attributes.Int("before");
  const int64_t after = call.attributes.Int("after");
  const int64_t step = call.attributes.Int("step");
  TensorType y = call.inputs[0];
  if (before < 0 || after < 0 || step < 1) {
    return Rejected(call, kX,
                    fmt::format("got before={}, after={}, step={}, expected 0 or more, and a step "
                                "of at least 1",
                                before, after, step));
  }
  const int64_t size = y.shape.dim(dim);
  const int64_t spread = size == 0 ? 0 : SizeProduct(size - 1, step) + 1;
  const bool is_possible = before <= Shape::kMaxElements && after <= Shape::kMaxElements;
  if (is_possible) y.shape.set_dim(dim, before + spread + after);
  if (!is_possible || !y.shape.IsValid()) return Rejected(call, kX, "got sizes that no tensor has");
  return Types{y};
}

StatusOr<Types> ConcatType(const ir::OpCall& call) {
  InputNames names;
  std::vector<std::string> numbered;
  for (size_t i = 0; i < call.inputs.size(); ++i) numbered.push_back(fmt::format("x{}", i));
  for (const std::string& name : numbered) names.push_back(name);
  ZG_RETURN_IF_ERROR(CheckDim(call, names));
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  TensorType y = call.inputs[0];
  int64_t size = 0;
  for (const TensorType& input : call.inputs) {
    TensorType like = input;
    if (input.dtype != y.dtype) return Rejected(call, names, "their dtypes differ");
    if (input.shape.num_dims() == y.shape.num_dims()) like.shape.set_dim(dim, y.shape.dim(dim));
    if (like != y)
      return Rejected(call, names, fmt::format("they differ in more than dim {}", dim));
    size += input.shape.dim(dim);
  }
  y.shape.set_dim(dim, size);
  if (!y.shape.IsValid()) return Rejected(call, names, "got sizes that no tensor has");
  return Types{y};
}

}  // namespace

ir::OpDef SliceOp() {
  ir::OpDef op;
  op.name = "slice";
  op.traits.keeps_dtype = true;
  op.doc = "y[.., i, ..] = x[.., start + i step, ..] for i < size, along `dim`.";
  op.attributes = {{"dim", int64_t{0}, true},
                   {"start", int64_t{0}, true},
                   {"size", int64_t{0}, true},
                   {"step", int64_t{1}}};
  op.infer_shape = SliceType;
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures = SplitOthers(call, call.attributes.Int("dim"));
    const Group group = SlicedGroup(call);
    if (group.is_one()) signatures.push_back({{group.SplitOfWhole()}, {group.SplitOfPart()}});
    return signatures;
  };
  op.localize = [](const ir::OpCall& logical, ir::OpCall* local) {
    ScaleToPart({"start", "size"}, logical, local);
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const ir::Attributes& slice = context.node().attributes;
    const int64_t dim = slice.Int("dim");
    const int64_t size = slice.Int("size");
    const int64_t end =
        size == 0 ? slice.Int("start") : slice.Int("start") + (size - 1) * slice.Int("step") + 1;
    const int64_t whole = context.input(0)->type.shape.dim(static_cast<int>(dim));
    context.set_input_gradient(0, context.builder().Op("pad", {context.output_gradient()},
                                                       {{"dim", dim},
                                                        {"before", slice.Int("start")},
                                                        {"after", whole - end},
                                                        {"step", slice.Int("step")}}));
    return Status::Ok();
  };
  op.gradient_sum = {0, [](const ir::OpCall& call) { return call.attributes.Int("step") == 1; },
                     AddSliceGradients};
  return op;
}

ir::OpDef PadOp() {
  ir::OpDef op;
  op.name = "pad";
  op.traits.keeps_dtype = true;
  op.doc =
      "y[.., before + i step, ..] = x[.., i, ..] along `dim`, and `value` elsewhere, also in `after` "
      "places at the end.";
  op.attributes = {{"dim", int64_t{0}, true},
                   {"before", int64_t{0}, true},
                   {"after", int64_t{0}, true},
                   {"step", int64_t{1}},
                   {"value", 0.0}};
  op.infer_shape = PadType;
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures = SplitOthers(call, call.attributes.Int("dim"));
    // The sum would contain n of them.
    if (call.attributes.Float("value") != 0.0) signatures.pop_back();
    const Group group = PaddedGroup(call);
    if (group.is_one()) signatures.push_back({{group.SplitOfPart()}, {group.SplitOfWhole()}});
    return signatures;
  };
  op.localize = [](const ir::OpCall& logical, ir::OpCall* local) {
    ScaleToPart({"before", "after"}, logical, local);
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const ir::Attributes& pad = context.node().attributes;
    const int dim = static_cast<int>(pad.Int("dim"));
    context.set_input_gradient(
        0, context.builder().Op("slice", {context.output_gradient()},
                                {{"dim", pad.Int("dim")},
                                 {"start", pad.Int("before")},
                                 {"size", context.input(0)->type.shape.dim(dim)},
                                 {"step", pad.Int("step")}}));
    return Status::Ok();
  };
  return op;
}

ir::OpDef ConcatOp() {
  ir::OpDef op;
  op.name = "concat";
  op.doc =
      "y is x0, x1, ... side by side along `dim`; of_groups: gradients of slices, each of which may "
      "be split.";
  op.traits.promotes_types = true;
  op.max_inputs = -1;
  op.attributes = {{"dim", int64_t{0}, true}, {"of_groups", false}};
  op.infer_shape = ConcatType;
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int dim = static_cast<int>(call.attributes.Int("dim"));
    Signatures signatures = SplitOthers(call, dim);
    const int64_t part = call.inputs[0].shape.dim(dim);
    const auto num_parts = static_cast<int64_t>(call.inputs.size());
    const bool are_equal =
        std::all_of(call.inputs.begin(), call.inputs.end(),
                    [&](const TensorType& input) { return input.shape.dim(dim) == part; });
    const Group group = {dim, part, part * num_parts};
    if (call.attributes.Bool("of_groups") && are_equal && group.is_one()) {
      signatures.push_back(
          {std::vector<Sbp>(call.inputs.size(), group.SplitOfPart()), {group.SplitOfWhole()}});
    }
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    const int64_t dim = context.node().attributes.Int("dim");
    int64_t start = 0;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const int64_t size = context.input(i)->type.shape.dim(static_cast<int>(dim));
      if (context.needs(i)) {
        context.set_input_gradient(
            i, context.builder().Op("slice", {context.output_gradient()},
                                    {{"dim", dim}, {"start", start}, {"size", size}}));
      }
      start += size;
    }
    return Status::Ok();
  };
  return op;
}

ir::OpDef FlipOp() {
  ir::OpDef op;
  op.name = "flip";
  op.traits.keeps_dtype = true;
  op.doc = "y[.., i, ..] = x[.., size - 1 - i, ..] along `dim`.";
  op.attributes = {{"dim", int64_t{0}, true}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckDim(call, kX));
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return SplitOthers(call, call.attributes.Int("dim"));
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op("flip", {context.output_gradient()}, context.node().attributes));
    return Status::Ok();
  };
  return op;
}

}  // namespace zg
