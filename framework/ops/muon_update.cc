// Muon's update of matrices (https://kellerjordan.github.io/posts/muon, as in torch.optim.Muon):
// Newton-Schulz steps, which are products of whole matrices, make the momentum of a matrix
// orthogonal. Parameters are in a bucket that is packed so that no rank's part cuts a matrix
// (zero/pack_owned.h): every matrix is updated by the rank that owns it, with the same bits on any
// rank.
#include <algorithm>
#include <map>

#include "framework/ir/op_registry.h"
#include "framework/ops/factored_shapes.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/update_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

constexpr char kMatrices[] = "matrices";

Status CheckMatrices(const ir::OpCall& call) {
  const std::vector<int64_t>& matrices = call.attributes.Ints(kMatrices);
  const TensorType& p = call.inputs[0];
  if (matrices.empty() && p.shape.num_dims() != 2) {
    return InvalidArgument(
        "{}: p is {}, expected a matrix; give what is no matrix another optimizer in a parameter "
        "group",
        call.op->name, p.ToString());
  }
  ZG_RETURN_IF_ERROR(CheckMatricesAttribute(call));
  int64_t end = 0;
  for (const FactoredTensor& matrix : FactoredTensorsOf(call.attributes, p.shape).tensors) {
    if (matrix.begin < end || matrix.count != 1) {
      return InvalidArgument(
          "{}: got {} matrices of {} x {} at {}, expected one behind the one before", call.op->name,
          matrix.count, matrix.rows, matrix.columns, matrix.begin);
    }
    end = matrix.begin + matrix.size();
  }
  return Status::Ok();
}

// The flops of the momentum, the norm and the parameter, and in every step those of the Gram
// matrix, its square, and their product with the matrix.
int64_t FlopsOf(const FactoredTensor& matrix, int64_t steps) {
  const int64_t side = std::min(matrix.rows, matrix.columns);
  const int64_t products = 4 * side * matrix.size() + 2 * side * side * side;
  return steps * (products + 3 * side * side + 2 * matrix.size()) + 13 * matrix.size();
}

// The flops of the part that has the most.
int64_t Flops(const ir::OpCall& call) {
  const Shape& p = call.inputs[0].shape;
  const int64_t steps = call.attributes.Int("steps");
  std::map<int64_t, int64_t> by_part;
  for (const FactoredTensor& matrix : FactoredTensorsOf(call.attributes, p).tensors) {
    if (matrix.size() == 0) continue;
    by_part[matrix.begin / p.num_elements()] += FlopsOf(matrix, steps);
  }
  int64_t most = 0;
  for (const auto& [part, flops] : by_part) most = std::max(most, flops);
  return most;
}

ir::OpDef MuonUpdate() {
  ir::OpDef op = UpdateOp(
      "muon_update",
      "Muon: m = m + (1 - momentum) (g - m); X = m, or with `nesterov` m + (1 - momentum) (g - m); X "
      "/= max(||X||, epsilon); `steps` times X = a X + (b G + c G^2) X with G = X X^T (of a tall "
      "matrix, of its transpose); p = p - lr weight_decay p - lr s X, where s is sqrt(max(1, rows / "
      "columns)), or with `match_rms_adamw` 0.2 sqrt(max(rows, columns)). In a bucket of `matrices` "
      "p may be one of its equal parts, which cut no matrix.",
      /*counts=*/false);
  op.traits.needs_whole_tensors = true;
  op.traits.keeps_tensors_whole = true;
  op.min_inputs = 3;
  op.max_inputs = 4;
  op.num_outputs = 2;
  op.attributes.push_back({"momentum", 0.0, true});
  op.attributes.push_back({"nesterov", true});
  op.attributes.push_back({"match_rms_adamw", false});
  op.attributes.push_back({"steps", int64_t{5}});
  op.attributes.push_back({"epsilon", 1e-7});
  op.attributes.push_back({"a", 3.4445});
  op.attributes.push_back({"b", -4.7750});
  op.attributes.push_back({"c", 2.0315});
  op.attributes.push_back({kMatrices, std::vector<int64_t>{}});
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_ASSIGN_OR_RETURN(Types types, UpdateTypes(call, /*num_states=*/1));
    ZG_RETURN_IF_ERROR(CheckMatrices(call));
    ZG_RETURN_IF_ERROR(CheckRange(call, "momentum", 1.0));
    ZG_RETURN_IF_ERROR(CheckRange(call, "epsilon"));
    return types;
  };
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    if (call.attributes.Ints(kMatrices).empty()) return {};
    ir::SbpSignature signature = {std::vector<Sbp>(call.inputs.size(), Sbp::S(0)),
                                  {Sbp::S(0), Sbp::S(0)}};
    if (call.inputs.size() == 4) signature.inputs.back() = Sbp::B();
    return {signature};
  };
  op.flops = Flops;
  return op;
}

}  // namespace

void RegisterMuonUpdateOps(ir::OpRegistry& registry) { registry.Register(MuonUpdate()); }

}  // namespace zg
