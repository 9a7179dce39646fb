// Rows of a table by index, and the gradient for the table.
// Shapes: table (V, C), ids (...) of i64, result (..., C).
#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

ir::OpDef Embedding() {
  const InputNames names = {"table", "ids"};
  ir::OpDef op;
  op.name = "embedding";
  op.doc = "y[..,c] = table[ids[..],c]. An id outside [0, V) ends the job.";
  op.min_inputs = op.max_inputs = 2;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& table = call.inputs[0];
    const TensorType& ids = call.inputs[1];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"table"}));
    if (table.shape.num_dims() != 2) return Rejected(call, names, "table is not a matrix");
    if (ids.dtype != DType::kI64) return Rejected(call, names, "ids are not i64");
    std::vector<int64_t> dims = ids.shape.dims();
    dims.push_back(table.shape.dim(1));
    return Types{{table.dtype, Shape(dims)}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int num_dims = call.inputs[1].shape.num_dims();
    Signatures signatures;
    for (int dim = 0; dim < num_dims; ++dim) {
      signatures.push_back({{B, Sbp::S(dim)}, {Sbp::S(dim)}});
    }
    signatures.push_back({{Sbp::S(1), B}, {Sbp::S(num_dims)}});
    signatures.push_back({{P, B}, {P}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const int64_t rows = context.input(0)->type.shape.dim(0);
    context.set_input_gradient(
        0, context.builder().Op("embedding_grad", {context.output_gradient(), context.input(1)},
                                {{"rows", rows}}));
    return Status::Ok();
  };
  return op;
}

ir::OpDef EmbeddingGrad() {
  const InputNames names = {"dy", "ids"};
  ir::OpDef op;
  op.name = "embedding_grad";
  op.doc = "dtable[v,c] = sum of dy[..,c] over the positions where ids[..] = v, for v < rows.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"rows", int64_t{1}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& dy = call.inputs[0];
    const TensorType& ids = call.inputs[1];
    const int64_t rows = call.attributes.Int("rows");
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"dy"}));
    if (ids.dtype != DType::kI64) return Rejected(call, names, "ids are not i64");
    if (dy.shape.num_dims() < 1 || WithoutLastDim(dy.shape) != ids.shape) {
      return Rejected(call, names, "leading dims differ");
    }
    if (rows < 1) return InvalidArgument("embedding_grad: rows is {}, expected rows >= 1", rows);
    return Types{{dy.dtype, Shape{rows, dy.shape.dim(-1)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[0].shape.num_dims() - 1;
    Signatures signatures;
    for (int dim = 0; dim < last; ++dim) signatures.push_back({{Sbp::S(dim), Sbp::S(dim)}, {P}});
    signatures.push_back({{Sbp::S(last), B}, {Sbp::S(1)}});
    signatures.push_back({{P, B}, {P}});
    return signatures;
  };
  op.not_differentiable = kNoSecondDerivative;
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterEmbeddingOps(ir::OpRegistry& registry) {
  registry.Register(Embedding());
  registry.Register(EmbeddingGrad());
}

}  // namespace zg
