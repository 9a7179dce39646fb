// Rows that are multiplied by matrices which they choose, as in a mixture of experts, and the gradient
// for the matrices: the grouped products of dropless mixtures (Gale et al., arXiv 2211.15841). Shapes: x
// (N, K), matrices (G, K, M), or (G, M, K) if they are `transposed`, ids (N) of i64, result (N, M). With
// an operand `part` a call has some of the equal parts of the G matrices (kernels/parted_dim.h).
#include "framework/ir/op_registry.h"
#include "framework/ops/dims_in_parts.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

// Adds a signature, without `part` if the call has none.
void Add(const ir::OpCall& call, std::vector<Sbp> inputs, Sbp output, Signatures* signatures) {
  inputs.resize(call.inputs.size(), B);
  signatures->push_back({std::move(inputs), {output}});
}

ir::OpDef GroupedMatmul() {
  const InputNames names = {"x", "matrices", "ids", "part"};
  ir::OpDef op;
  op.name = "grouped_matmul";
  op.doc =
      "y[i,m] = sum_k x[i,k] matrices[ids[i],k,m]; with `transposed` matrices[ids[i],m,k]. An id that "
      "is no matrix ends the job. Of matrices in parts, ids of others give 0.";
  op.min_inputs = 3;
  op.max_inputs = 4;
  op.attributes = {{"transposed", false}, {"parts", int64_t{1}}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const Shape& x = call.inputs[0].shape;
    const Shape& matrices = call.inputs[1].shape;
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"x", "matrices"}));
    if (call.inputs[2].dtype != DType::kI64) return Rejected(call, names, "ids are not i64");
    if (x.num_dims() != 2 || matrices.num_dims() != 3) {
      return Rejected(call, names, "x and matrices have not 2 and 3 dims");
    }
    if (call.inputs[2].shape != Shape{x.dim(0)}) {
      return Rejected(call, names, "ids are not one for each row of x");
    }
    const bool transposed = call.attributes.Bool("transposed");
    if (matrices.dim(transposed ? 2 : 1) != x.dim(1)) {
      return Rejected(call, names, "the rows of x do not fit the matrices");
    }
    ZG_RETURN_IF_ERROR(CheckPart(call, names, 3, matrices.dim(0)));
    return Types{{call.inputs[0].dtype, Shape{x.dim(0), matrices.dim(transposed ? 1 : 2)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const bool transposed = call.attributes.Bool("transposed");
    Signatures signatures;
    Add(call, {Sbp::S(0), B, Sbp::S(0)}, Sbp::S(0), &signatures);
    Add(call, {B, Sbp::S(transposed ? 1 : 2)}, Sbp::S(1), &signatures);
    Add(call, {Sbp::S(1), Sbp::S(transposed ? 2 : 1)}, P, &signatures);
    Add(call, {P, B}, P, &signatures);
    Add(call, {B, P}, P, &signatures);
    if (call.inputs.size() == 4) Add(call, {B, Sbp::S(0), B, Sbp::S(0)}, P, &signatures);
    return signatures;
  };
  op.in_parts = [](ir::PartsContext& context) {
    if (context.input_sbp(1) == Sbp::S(0)) ComputeOwnParts(context, 3);
    return Status::Ok();
  };
  op.gradient = [](ir::GradientContext& context) {
    ir::Builder& builder = context.builder();
    const ir::Attributes& attributes = context.node().attributes;
    const bool transposed = attributes.Bool("transposed");
    const int64_t parts = attributes.Int("parts");
    ir::Value* const dy = context.output_gradient();
    std::vector<ir::Value*> inputs = context.node().inputs;
    if (context.needs(0)) {
      inputs[0] = dy;
      context.set_input_gradient(
          0, builder.Op("grouped_matmul", inputs, {{"transposed", !transposed}, {"parts", parts}}));
    }
    if (context.needs(1)) {
      const int64_t groups = SizeOfAllParts(context.node(), 3, context.input(1)->type.shape.dim(0));
      inputs[0] = transposed ? dy : context.input(0);
      inputs[1] = transposed ? context.input(0) : dy;
      context.set_input_gradient(
          1, builder.Op("grouped_matmul_grad", inputs, {{"groups", groups}, {"parts", parts}}));
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    const Shape& matrices = call.inputs[1].shape;
    return 2 * call.inputs[0].shape.dim(0) * matrices.dim(1) * matrices.dim(2);
  };
  return op;
}

ir::OpDef GroupedMatmulGrad() {
  const InputNames names = {"a", "b", "ids", "part"};
  ir::OpDef op;
  op.name = "grouped_matmul_grad";
  op.doc =
      "y[g,p,q] = the sum of a[i,p] b[i,q] over the rows where ids[i] = g, for g < groups; for the "
      "groups of some parts.";
  op.min_inputs = 3;
  op.max_inputs = 4;
  op.attributes = {{"groups", int64_t{1}, true}, {"parts", int64_t{1}}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const Shape& a = call.inputs[0].shape;
    const Shape& b = call.inputs[1].shape;
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"a", "b"}));
    if (call.inputs[2].dtype != DType::kI64) return Rejected(call, names, "ids are not i64");
    if (a.num_dims() != 2 || b.num_dims() != 2 || a.dim(0) != b.dim(0) ||
        call.inputs[2].shape != Shape{a.dim(0)}) {
      return Rejected(call, names, "a, b and ids have not the same rows");
    }
    ZG_ASSIGN_OR_RETURN(const int64_t groups, SizeOfOwnParts(call, names, 3, "groups"));
    return Types{{call.inputs[0].dtype, Shape{groups, a.dim(1), b.dim(1)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    Add(call, {Sbp::S(0), Sbp::S(0), Sbp::S(0)}, P, &signatures);
    Add(call, {Sbp::S(1)}, Sbp::S(1), &signatures);
    Add(call, {B, Sbp::S(1)}, Sbp::S(2), &signatures);
    Add(call, {P}, P, &signatures);
    Add(call, {B, P}, P, &signatures);
    if (call.inputs.size() == 4) Add(call, {B, B, B, Sbp::S(0)}, Sbp::S(0), &signatures);
    return signatures;
  };
  op.in_parts = [](ir::PartsContext& context) {
    if (context.wanted() == Sbp::S(0)) ComputeOwnParts(context, 3);
    return Status::Ok();
  };
  // y is linear in a and in b: da[i] = dy[ids[i]] b[i], db[i] = dy[ids[i]]' a[i].
  op.gradient = [](ir::GradientContext& context) {
    for (const int own : {0, 1}) {
      if (!context.needs(own)) continue;
      std::vector<ir::Value*> inputs = context.node().inputs;
      inputs[0] = context.input(1 - own);
      inputs[1] = context.output_gradient();
      context.set_input_gradient(
          own, context.builder().Op(
                   "grouped_matmul", inputs,
                   {{"transposed", own == 0}, {"parts", context.node().attributes.Int("parts")}}));
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    return 2 * call.inputs[0].shape.num_elements() * call.inputs[1].shape.dim(1);
  };
  return op;
}

}  // namespace

void RegisterGroupedMatmulOps(ir::OpRegistry& registry) {
  registry.Register(GroupedMatmul());
  registry.Register(GroupedMatmulGrad());
}

}  // namespace zg
