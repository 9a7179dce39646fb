// AdamW with 8-bit states (arXiv 2110.02861, as in torchao.optim.AdamW8bit): both moments are codes
// of a table of 256 values, times the largest magnitude of their block. A bucket begins tensors and
// parts at multiples of a block, so the bits depend only on the whole tensor.
#include "framework/ir/op_registry.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/quantised_blocks.h"
#include "framework/ops/update_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

constexpr int kNumTensors = 6;  // p, g, and codes and scales of m and v

Status CheckInput(const ir::OpCall& call, int index, std::string_view name,
                  const TensorType& expected) {
  const TensorType& got = call.inputs[index];
  if (got == expected) return Status::Ok();
  return InvalidArgument("{}: {} is {}, expected {}", call.op->name, name, got.ToString(),
                         expected.ToString());
}

StatusOr<Types> InferShape(const ir::OpCall& call) {
  const TensorType& p = call.inputs[0];
  TensorType g = call.inputs[1];
  if (IsFloat(g.dtype)) g.dtype = DType::kF32;
  if (p.dtype != DType::kF32 || p != g) {
    return InvalidArgument("{}: got p {} and g {}, expected p in f32 and g of its shape",
                           call.op->name, p.ToString(), call.inputs[1].ToString());
  }
  const TensorType codes = {DType::kU8, p.shape};
  const TensorType scales = {DType::kF32, {NumQuantisedBlocks(p.shape.num_elements())}};
  ZG_RETURN_IF_ERROR(CheckInput(call, 2, "m", codes));
  ZG_RETURN_IF_ERROR(CheckInput(call, 3, "m_scale", scales));
  ZG_RETURN_IF_ERROR(CheckInput(call, 4, "v", codes));
  ZG_RETURN_IF_ERROR(CheckInput(call, 5, "v_scale", scales));
  if (call.inputs.size() > kNumTensors) {
    ZG_RETURN_IF_ERROR(CheckInput(call, kNumTensors, "control", {DType::kF32, {2}}));
  }
  ZG_RETURN_IF_ERROR(CheckRange(call, "lr"));
  ZG_RETURN_IF_ERROR(CheckRange(call, "weight_decay"));
  ZG_RETURN_IF_ERROR(CheckRange(call, "beta1", 1.0));
  ZG_RETURN_IF_ERROR(CheckRange(call, "beta2", 1.0));
  ZG_RETURN_IF_ERROR(CheckRange(call, "epsilon"));
  return Types{p, codes, scales, codes, scales};
}

ir::OpDef Adam8Update() {
  ir::OpDef op = UpdateOp(
      op_names::kAdam8Update,
      "adam_update with decoupled weight decay, whose m and v are kept as codes of 8 bits: of each "
      "block of 256 elements a scale, the largest magnitude, and of each element the nearest of 256 "
      "values between -1 and 1, or 0 and 1, that lie denser near 0.",
      /*counts=*/true);
  op.traits.needs_whole_tensors = true;
  op.min_inputs = kNumTensors;
  op.max_inputs = kNumTensors + 1;
  op.num_outputs = kNumTensors - 1;
  for (const char* name : {"beta1", "beta2", "epsilon"}) op.attributes.push_back({name, 0.0, true});
  op.infer_shape = InferShape;
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    const Shape& p = call.inputs[0].shape;
    if (p.num_dims() != 1 || p.num_elements() % kQuantisedBlock != 0) return {};
    ir::SbpSignature signature = {std::vector<Sbp>(call.inputs.size(), Sbp::S(0)),
                                  std::vector<Sbp>(kNumTensors - 1, Sbp::S(0))};
    if (call.inputs.size() > kNumTensors) signature.inputs.back() = Sbp::B();
    return {signature};
  };
  op.flops = [](const ir::OpCall& call) { return 20 * call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterQuantisedUpdateOps(ir::OpRegistry& registry) { registry.Register(Adam8Update()); }

}  // namespace zg
