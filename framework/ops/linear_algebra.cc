// Systems of linear equations and factors of matrices, the last two dims; those before are a batch.
// Gradients: Giles, Collected matrix derivative results for forward and reverse mode algorithmic
// differentiation (2008); Murray, Differentiation of the Cholesky decomposition (arXiv 1602.07527).
#include <utility>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/terms.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

const InputNames kSystem = {"a", "b"};
const InputNames kMatrix = {"a"};

Status CheckMatrix(const ir::OpCall& call, const InputNames& names) {
  const TensorType& a = call.inputs[0];
  if (a.dtype != DType::kF32) return Rejected(call, names, "a is not f32");
  if (a.shape.num_dims() >= 2 && a.shape.dim(-1) == a.shape.dim(-2)) return Status::Ok();
  return Rejected(call, names, "a is not square matrices");
}

Status CheckSystem(const ir::OpCall& call) {
  ZG_RETURN_IF_ERROR(CheckMatrix(call, kSystem));
  const TensorType& b = call.inputs[1];
  if (b.dtype != DType::kF32) return Rejected(call, kSystem, "b is not f32");
  if (b.shape.num_dims() == call.inputs[0].shape.num_dims() &&
      WithoutLastDim(b.shape) == WithoutLastDim(call.inputs[0].shape)) {
    return Status::Ok();
  }
  return Rejected(call, kSystem, "b is not as many matrices of as many rows");
}

Shape BatchOf(const ir::OpCall& call) {
  return WithoutLastDim(WithoutLastDim(call.inputs[0].shape));
}

// Every operand and result split along each batch dim.
Signatures BatchSplit(const ir::OpCall& call, size_t num_outputs = 1) {
  Signatures signatures;
  for (int dim = 0; dim + 2 < call.inputs[0].shape.num_dims(); ++dim) {
    signatures.push_back({NdSbp(call.inputs.size(), Sbp::S(dim)), NdSbp(num_outputs, Sbp::S(dim))});
  }
  return signatures;
}

// Also the columns of b and of the result; both are linear in b.
Signatures SystemPlacements(const ir::OpCall& call) {
  Signatures signatures = BatchSplit(call);
  const Sbp columns = Sbp::S(call.inputs[1].shape.num_dims() - 1);
  signatures.push_back({{B, columns}, {columns}});
  signatures.push_back({{B, P}, {P}});
  return signatures;
}

// A third of the multiplications and additions of a product of matrices like a, `thirds` times.
int64_t FlopsOf(const ir::OpCall& call, int64_t thirds) {
  const int64_t n = call.inputs[0].shape.dim(-1);
  return call.inputs[0].shape.num_elements() * n * 2 / 3 * thirds;
}
int64_t FlopsOfSystem(const ir::OpCall& call, int64_t times) {
  return times * call.inputs[1].shape.num_elements() * call.inputs[0].shape.dim(-1);
}

Term Product(Term a, bool transposes_a, Term b, bool transposes_b) {
  return Append("matmul", a, b, {{"transpose_a", transposes_a}, {"transpose_b", transposes_b}});
}

Term Transposed(Term x) {
  if (x.value == nullptr) return x;
  const int num_dims = x.value->type.shape.num_dims();
  std::vector<int64_t> order;
  for (int i = 0; i < num_dims - 2; ++i) order.push_back(i);
  order.insert(order.end(), {num_dims - 1, num_dims - 2});
  return Append("permute", x, {{"order", order}});
}

// The elements on and below the diagonal, or on and above it; without the diagonal if not
// `has_diagonal`. Zeros elsewhere.
Term Triangle(Term x, bool upper, bool has_diagonal) {
  if (x.value == nullptr) return x;
  const int64_t n = x.value->type.shape.dim(-1);
  const Term columns = {x.builder, x.builder->Op("iota", {}, {{"size", n}})};
  const char* const relation =
      upper ? (has_diagonal ? "greater_equal" : "greater") : (has_diagonal ? "less_equal" : "less");
  return Append("masked_fill", x, Append(relation, columns, AsColumn(columns)),
                {{"value", 0.0}, {"where", false}});
}

// m x = b, or m' x = b if `transposed`, for the matrix m that an op sees in a: db is the solution for dx
// of the other one, and dm = -db x', or its transpose. `of_a` makes da of dm.
template <typename OfA>
Status SystemGradient(ir::GradientContext& context, const OfA& of_a) {
  if (!context.needs(0) && !context.needs(1)) return Status::Ok();
  ir::Builder& builder = context.builder();
  ir::Attributes attributes = context.node().attributes;
  const bool transposed = attributes.Bool("transposed");
  attributes.Set("transposed", !transposed);
  const Term a = {&builder, context.input(0)}, x = {&builder, context.output(0)};
  const Term dx = {&builder, context.output_gradient()};
  const Term db = Append(context.node().op->name.c_str(), a, dx, std::move(attributes));
  if (context.needs(0)) {
    const Term dm = transposed ? Product(x, false, db, true) : Product(db, false, x, true);
    context.set_input_gradient(0, of_a(-dm).value);
  }
  if (context.needs(1)) context.set_input_gradient(1, db.value);
  return Status::Ok();
}

// What the ops that solve systems have in common.
ir::OpDef OnSystem(const char* name) {
  ir::OpDef op;
  op.name = name;
  op.traits.computes_in_f32 = true;
  op.min_inputs = op.max_inputs = 2;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckSystem(call));
    return Types{call.inputs[1]};
  };
  op.sbp_signatures = SystemPlacements;
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({1}); };
  return op;
}

ir::OpDef Solve() {
  ir::OpDef op = OnSystem("solve");
  op.doc =
      "x with a x = b, or with a' x = b if `transposed`: a (.., n, n), b and x (.., n, k). Gaussian "
      "elimination with the largest pivot of each column. A singular matrix ends the job.";
  op.attributes = {{"transposed", false}};
  op.gradient = [](ir::GradientContext& context) {
    return SystemGradient(context, [](Term da) { return da; });
  };
  op.flops = [](const ir::OpCall& call) { return FlopsOf(call, 1) + FlopsOfSystem(call, 2); };
  return op;
}

ir::OpDef Inverse() {
  ir::OpDef op;
  op.name = "inverse";
  op.doc =
      "The inverses of matrices a (.., n, n), as solve finds them. A singular one ends the job.";
  op.traits.computes_in_f32 = true;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckMatrix(call, kMatrix));
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) { return BatchSplit(call); };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const Term y = {&context.builder(), context.output(0)};
    const Term dy = {&context.builder(), context.output_gradient()};
    context.set_input_gradient(0, (-Product(y, true, Product(dy, false, y, true), false)).value);
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return FlopsOf(call, 4); };
  return op;
}

ir::OpDef Slogdet() {
  ir::OpDef op;
  op.name = "slogdet";
  op.doc =
      "ln |det a| of matrices a (.., n, n), and as output 1 the sign of det a, -1, 0 or 1. That of a "
      "singular one is 0, and the logarithm -infinity.";
  op.num_outputs = 2;
  op.traits.computes_in_f32 = true;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckMatrix(call, kMatrix));
    const TensorType one = {DType::kF32, BatchOf(call)};
    return Types{one, one};
  };
  op.sbp_signatures = [](const ir::OpCall& call) { return BatchSplit(call, 2); };
  op.gradient = [](ir::GradientContext& context) {
    ZG_RETURN_IF_ERROR(CheckOnlyFirstUsed(context));
    if (!context.needs(0)) return Status::Ok();
    const Term a = {&context.builder(), context.input(0)};
    const Term dy = {&context.builder(), context.output_gradient()};
    const Term inverse = Append("inverse", a);
    context.set_input_gradient(0, (WithLastDims(dy, 2) * Transposed(inverse)).value);
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return FlopsOf(call, 1); };
  return op;
}

// y = l: a = l l', and only a's lower triangle counts. With f(x) the lower triangle of x with half its
// diagonal: the gradient of a as a symmetric matrix is s + s', s = l'^-1 f(l' dl) l^-1 / 2.
Status CholeskyGradient(ir::GradientContext& context) {
  if (!context.needs(0)) return Status::Ok();
  const Term l = {&context.builder(), context.output(0)};
  const Term dl = {&context.builder(), context.output_gradient()};
  const Term product = Product(l, true, dl, false);
  const Term halves =
      0.5 * (Triangle(product, false, true) + Transposed(Triangle(product, false, false)));
  const ir::Attributes by_transposed = {{"upper", false}, {"transposed", true}};
  const Term left = Append("solve_triangular", l, halves, by_transposed);
  const Term both = Append("solve_triangular", l, Transposed(left), by_transposed);
  // An element below the diagonal stands for the one above it, too.
  const Term da = Triangle(both, false, true) + Transposed(Triangle(both, true, false));
  context.set_input_gradient(0, da.value);
  return Status::Ok();
}

ir::OpDef Cholesky() {
  ir::OpDef op;
  op.name = "cholesky";
  op.doc =
      "The lower triangular l with a = l l' of symmetric positive definite matrices a (.., n, n), of "
      "which only the lower triangle is read. Another matrix ends the job.";
  op.traits.computes_in_f32 = true;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckMatrix(call, kMatrix));
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) { return BatchSplit(call); };
  op.gradient = CholeskyGradient;
  op.flops = [](const ir::OpCall& call) { return FlopsOf(call, 1) / 2; };
  return op;
}

ir::OpDef SolveTriangular() {
  ir::OpDef op = OnSystem("solve_triangular");
  op.doc =
      "x with t x = b, or with t' x = b if `transposed`: t is the upper or lower triangle of a "
      "(.., n, n), with ones on its diagonal if `unit`; b and x (.., n, k).";
  op.attributes = {{"upper", false, true}, {"transposed", false}, {"unit", false}};
  op.gradient = [](ir::GradientContext& context) {
    const ir::Attributes& attributes = context.node().attributes;
    return SystemGradient(context, [&](Term da) {
      return Triangle(da, attributes.Bool("upper"), !attributes.Bool("unit"));
    });
  };
  op.flops = [](const ir::OpCall& call) { return FlopsOfSystem(call, 1); };
  return op;
}

}  // namespace

void RegisterLinearAlgebraOps(ir::OpRegistry& registry) {
  registry.Register(Solve());
  registry.Register(Inverse());
  registry.Register(Slogdet());
  registry.Register(Cholesky());
  registry.Register(SolveTriangular());
}

}  // namespace zg
