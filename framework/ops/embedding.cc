// Rows of a table by index, and the gradient for the table. Shapes: table (V, C), ids (...) of i64,
// result (..., C). With an operand `part` the table has some of the equal parts of V rows
// (kernels/parted_dim.h).
#include "framework/ir/op_registry.h"
#include "framework/ops/dims_in_parts.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

ir::OpDef Embedding() {
  const InputNames names = {"table", "ids", "part"};
  ir::OpDef op;
  op.name = "embedding";
  op.doc =
      "y[..,c] = table[ids[..],c]. An id outside [0, V) ends the job. Of a table in parts, ids in "
      "others give 0.";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.attributes = {{"parts", int64_t{1}}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& table = call.inputs[0];
    const TensorType& ids = call.inputs[1];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"table"}));
    if (table.shape.num_dims() != 2) return Rejected(call, names, "table is not a matrix");
    if (ids.dtype != DType::kI64) return Rejected(call, names, "ids are not i64");
    ZG_RETURN_IF_ERROR(CheckPart(call, names, 2, table.shape.dim(0)));
    std::vector<int64_t> dims = ids.shape.dims();
    dims.push_back(table.shape.dim(1));
    return Types{{table.dtype, Shape(dims)}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int num_dims = call.inputs[1].shape.num_dims();
    Signatures signatures;
    const auto add = [&](Sbp table, Sbp ids, Sbp part, Sbp y) {
      signatures.push_back({{table, ids}, {y}});
      if (call.inputs.size() == 3) signatures.back().inputs.push_back(part);
    };
    for (int dim = 0; dim < num_dims; ++dim) add(B, Sbp::S(dim), B, Sbp::S(dim));
    add(Sbp::S(1), B, B, Sbp::S(num_dims));
    add(P, B, B, P);
    if (call.inputs.size() == 3) add(Sbp::S(0), B, Sbp::S(0), P);
    return signatures;
  };
  op.in_parts = [](ir::PartsContext& context) {
    if (context.input_sbp(0) == Sbp::S(0)) ComputeOwnParts(context, 2);
    return Status::Ok();
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const ir::Node& node = context.node();
    std::vector<ir::Value*> inputs = node.inputs;
    inputs[0] = context.output_gradient();
    const int64_t rows = SizeOfAllParts(node, 2, context.input(0)->type.shape.dim(0));
    const int64_t num_parts = node.attributes.Int("parts");
    context.set_input_gradient(
        0, context.builder().Op("embedding_grad", inputs, {{"rows", rows}, {"parts", num_parts}}));
    return Status::Ok();
  };
  return op;
}

ir::OpDef EmbeddingGrad() {
  const InputNames names = {"dy", "ids", "part"};
  ir::OpDef op;
  op.name = "embedding_grad";
  op.doc =
      "dtable[v,c] = sum of dy[..,c] over the positions where ids[..] = v, for v < rows; for those of "
      "some parts of the rows.";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.attributes = {{"rows", int64_t{1}, true}, {"parts", int64_t{1}}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& dy = call.inputs[0];
    const TensorType& ids = call.inputs[1];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"dy"}));
    if (ids.dtype != DType::kI64) return Rejected(call, names, "ids are not i64");
    if (dy.shape.num_dims() < 1 || WithoutLastDim(dy.shape) != ids.shape) {
      return Rejected(call, names, "leading dims differ");
    }
    ZG_ASSIGN_OR_RETURN(const int64_t rows, SizeOfOwnParts(call, names, 2, "rows"));
    return Types{{dy.dtype, Shape{rows, dy.shape.dim(-1)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[0].shape.num_dims() - 1;
    Signatures signatures;
    const auto add = [&](Sbp dy, Sbp ids, Sbp part, Sbp dtable) {
      signatures.push_back({{dy, ids}, {dtable}});
      if (call.inputs.size() == 3) signatures.back().inputs.push_back(part);
    };
    for (int dim = 0; dim < last; ++dim) add(Sbp::S(dim), Sbp::S(dim), B, P);
    add(Sbp::S(last), B, B, Sbp::S(1));
    add(P, B, B, P);
    if (call.inputs.size() == 3) add(B, B, Sbp::S(0), Sbp::S(0));
    return signatures;
  };
  op.in_parts = [](ir::PartsContext& context) {
    if (context.wanted() == Sbp::S(0)) ComputeOwnParts(context, 2);
    return Status::Ok();
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    std::vector<ir::Value*> inputs = context.node().inputs;
    inputs[0] = context.output_gradient();
    context.set_input_gradient(
        0, context.builder().Op("embedding", inputs,
                                {{"parts", context.node().attributes.Int("parts")}}));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterEmbeddingOps(ir::OpRegistry& registry) {
  registry.Register(Embedding());
  registry.Register(EmbeddingGrad());
}

}  // namespace zg
