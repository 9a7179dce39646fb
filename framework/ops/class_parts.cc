// The softmax cross entropy of logits that are split by classes, such as those of a head whose rows
// are split over ranks (arXiv 1909.08053, section 3): each part computes three sums for a row, and
// the loss follows from those of all parts, so that the logits need not be moved. Shapes: logits
// (..., V) of n of N equal parts, targets (...), part (n), sums (n, ..., 3).
#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

constexpr int64_t kNumSums = 3;
constexpr char kNoGradient[] = "it appears where backward is built already";

ir::OpDef ClassPartSums() {
  const InputNames names = {"logits", "targets", "part"};
  ir::OpDef op;
  op.name = "class_part_sums";
  op.doc =
      "For each part of the classes and each row: the largest of its logits, m, the sum of "
      "exp(logit - m), and the target's logit, 0 if it is another part's. A target outside all "
      "classes ends the job.";
  op.min_inputs = op.max_inputs = 3;
  op.attributes = {{"parts", int64_t{1}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& logits = call.inputs[0];
    const TensorType& targets = call.inputs[1];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"logits"}));
    if (logits.shape.num_dims() < 1) return Rejected(call, names, "logits have no dims");
    if (targets.dtype != DType::kI64 || targets.shape != WithoutLastDim(logits.shape)) {
      return Rejected(call, names, "targets are not one i64 per row of logits");
    }
    ZG_RETURN_IF_ERROR(CheckPart(call, names, 2, logits.shape.dim(-1)));
    std::vector<int64_t> dims = {call.inputs[2].shape.dim(0)};
    for (const int64_t size : targets.shape.dims()) dims.push_back(size);
    dims.push_back(kNumSums);
    return Types{{DType::kF32, Shape(dims)}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[1].shape.num_dims();
    Signatures signatures;
    for (int dim = 0; dim < last; ++dim) {
      signatures.push_back({{Sbp::S(dim), Sbp::S(dim), Sbp::B()}, {Sbp::S(dim + 1)}});
    }
    signatures.push_back({{Sbp::S(last), Sbp::B(), Sbp::S(0)}, {Sbp::S(0)}});
    return signatures;
  };
  op.not_differentiable = kNoGradient;
  op.flops = [](const ir::OpCall& call) { return 4 * call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef CrossEntropyOfParts() {
  const InputNames names = {"sums"};
  ir::OpDef op;
  op.name = "cross_entropy_of_parts";
  op.doc =
      "softmax_cross_entropy from the sums of all parts, taken in their order: log_sum_exp = M + log "
      "of the sum of e exp(m - M), with M the largest m.";
  op.num_outputs = 2;
  op.traits.is_loss = true;
  op.attributes = {{"divisor", 1.0, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& sums = call.inputs[0];
    if (sums.dtype != DType::kF32 || sums.shape.num_dims() < 2 || sums.shape.dim(-1) != kNumSums) {
      return Rejected(call, names, "expected f32[n,...,3]");
    }
    const double divisor = call.attributes.Float("divisor");
    if (!(divisor > 0.0)) {
      return InvalidArgument("cross_entropy_of_parts: divisor is {}, expected divisor > 0",
                             divisor);
    }
    const std::vector<int64_t>& dims = sums.shape.dims();
    return Types{{DType::kF32, Shape{}},
                 {DType::kF32, Shape(std::vector<int64_t>(dims.begin() + 1, dims.end() - 1))}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 1; dim + 1 < call.inputs[0].shape.num_dims(); ++dim) {
      signatures.push_back({{Sbp::S(dim)}, {Sbp::P(), Sbp::S(dim - 1)}});
    }
    return signatures;
  };
  op.not_differentiable = kNoGradient;
  return op;
}

}  // namespace

void RegisterClassPartsOps(ir::OpRegistry& registry) {
  registry.Register(ClassPartSums());
  registry.Register(CrossEntropyOfParts());
}

}  // namespace zg
