// Products of matrices with batch dims. Shapes: a (..., M, K), b (..., K, N), y (..., M, N);
// transposed operands are stored as (..., K, M) and (..., N, K). The leading dims are broadcast.
#include "framework/ir/op_registry.h"
#include "framework/ops/broadcasting.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

const InputNames kNames = {"a", "b"};

struct Sizes {
  Shape batch;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

Shape BatchOf(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
}

StatusOr<Sizes> SizesOf(const ir::OpCall& call) {
  const Shape& a = call.inputs[0].shape;
  const Shape& b = call.inputs[1].shape;
  const bool transpose_a = call.attributes.Bool("transpose_a");
  const bool transpose_b = call.attributes.Bool("transpose_b");
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, kNames));
  if (a.num_dims() < 2 || b.num_dims() < 2) {
    return Rejected(call, kNames, "got no matrices, expected at least two dims");
  }
  if (a.dim(transpose_a ? -2 : -1) != b.dim(transpose_b ? -1 : -2)) {
    return Rejected(call, kNames, "inner dims differ");
  }
  const std::optional<Shape> batch = BroadcastShapes(BatchOf(a), BatchOf(b));
  if (!batch.has_value())
    return Rejected(call, kNames, "the batch dims cannot be broadcast to one");
  return Sizes{*batch, a.dim(transpose_a ? -1 : -2), b.dim(transpose_b ? -2 : -1),
               a.dim(transpose_a ? -2 : -1)};
}

StatusOr<Types> MatmulType(const ir::OpCall& call) {
  ZG_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(call));
  std::vector<int64_t> dims = sizes.batch.dims();
  dims.push_back(sizes.m);
  dims.push_back(sizes.n);
  return Types{{call.inputs[0].dtype, Shape(std::move(dims))}};
}

std::vector<ir::SbpSignature> MatmulPlacements(const ir::OpCall& call) {
  const StatusOr<Types> type = MatmulType(call);
  if (!type.ok()) return {};
  const Shape& y = (*type)[0].shape;
  const Sbp B = Sbp::B();
  const Sbp P = Sbp::P();
  const int a_dims = call.inputs[0].shape.num_dims();
  const int b_dims = call.inputs[1].shape.num_dims();
  const int a_m = call.attributes.Bool("transpose_a") ? a_dims - 1 : a_dims - 2;
  const int a_k = 2 * a_dims - 3 - a_m;
  const int b_n = call.attributes.Bool("transpose_b") ? b_dims - 2 : b_dims - 1;
  const int b_k = 2 * b_dims - 3 - b_n;
  std::vector<ir::SbpSignature> signatures;
  for (int dim = 0; dim + 2 < y.num_dims(); ++dim) {
    std::vector<Sbp> inputs;
    for (const TensorType& input : call.inputs) {
      const int own = dim - (y.num_dims() - input.shape.num_dims());
      const bool has_it = own >= 0 && input.shape.dim(own) == y.dim(dim);
      inputs.push_back(has_it ? Sbp::S(own) : B);
    }
    signatures.push_back({std::move(inputs), {Sbp::S(dim)}});
  }
  signatures.push_back({{Sbp::S(a_m), B}, {Sbp::S(y.num_dims() - 2)}});
  signatures.push_back({{B, Sbp::S(b_n)}, {Sbp::S(y.num_dims() - 1)}});
  signatures.push_back({{Sbp::S(a_k), Sbp::S(b_k)}, {P}});
  signatures.push_back({{P, B}, {P}});
  signatures.push_back({{B, P}, {P}});
  return signatures;
}

// y = a' b', where ' transposes or does not: da' = dy b'^T, db' = a'^T dy.
Status MatmulGradient(ir::GradientContext& context) {
  ir::Builder& builder = context.builder();
  const ir::Attributes& attributes = context.node().attributes;
  const bool transpose_a = attributes.Bool("transpose_a");
  const bool transpose_b = attributes.Bool("transpose_b");
  ir::Value* const a = context.input(0);
  ir::Value* const b = context.input(1);
  ir::Value* const dy = context.output_gradient();
  const auto product = [&](ir::Value* left, bool transposes_left, ir::Value* right,
                           bool transposes_right) {
    return builder.Op("matmul", {left, right},
                      {{"transpose_a", transposes_left}, {"transpose_b", transposes_right}});
  };
  if (context.needs(0)) {
    ir::Value* const da =
        transpose_a ? product(b, transpose_b, dy, true) : product(dy, false, b, !transpose_b);
    context.set_input_gradient(0, SumToType(builder, da, a->type));
  }
  if (context.needs(1)) {
    ir::Value* const db =
        transpose_b ? product(dy, true, a, transpose_a) : product(a, !transpose_a, dy, false);
    context.set_input_gradient(1, SumToType(builder, db, b->type));
  }
  return Status::Ok();
}

}  // namespace

void RegisterMatmulOps(ir::OpRegistry& registry) {
  ir::OpDef op;
  op.name = "matmul";
  op.doc = "y[..,m,n] = sum_k a[..,m,k] b[..,k,n]; the leading dims are broadcast.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"transpose_a", false}, {"transpose_b", false}};
  op.infer_shape = MatmulType;
  op.sbp_signatures = MatmulPlacements;
  op.gradient = MatmulGradient;
  op.flops = [](const ir::OpCall& call) -> int64_t {
    const StatusOr<Sizes> sizes = SizesOf(call);
    return 2 * sizes->batch.num_elements() * sizes->m * sizes->n * sizes->k;
  };
  registry.Register(std::move(op));
}

}  // namespace zg
