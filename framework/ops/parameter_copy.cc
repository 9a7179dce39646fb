#include "framework/ops/parameter_copy.h"

#include <algorithm>
#include <utility>

namespace zg {
namespace {

constexpr char kCopy[] = "copy_dtype";

// The rules of the plain op ask the call for its op.
ir::OpCall CallOf(const ir::OpDef& plain, const ir::OpCall& call) {
  ir::OpCall same = call;
  same.op = &plain;
  return same;
}

}  // namespace

std::optional<DType> CopyOf(const ir::Attributes& attributes) {
  if (!attributes.Has(kCopy) || attributes.DType(kCopy) == DType::kF32) return std::nullopt;
  return attributes.DType(kCopy);
}

bool CanCopy(const ir::OpDef& op) {
  return std::any_of(op.attributes.begin(), op.attributes.end(),
                     [](const auto& attribute) { return attribute.name == kCopy; });
}

ir::OpDef WithCopy(ir::OpDef op) {
  const ir::OpDef plain = op;
  op.doc += " With a copy_dtype of 16 bits, the last output is the new p in that type.";
  op.num_outputs = -1;
  op.attributes.push_back({kCopy, DType::kF32});
  op.infer_shape = [plain](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    ZG_ASSIGN_OR_RETURN(std::vector<TensorType> types, plain.infer_shape(CallOf(plain, call)));
    const std::optional<DType> copy = CopyOf(call.attributes);
    if (!copy) return types;
    if (!IsFloat(*copy)) {
      return InvalidArgument("{}: copy_dtype is {}, expected bf16 or f16, or f32 for none",
                             call.op->name, DTypeName(*copy));
    }
    types.push_back({*copy, types[0].shape});
    return types;
  };
  op.sbp_signatures = [plain](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = plain.sbp_signatures(CallOf(plain, call));
    if (!CopyOf(call.attributes)) return signatures;
    for (ir::SbpSignature& signature : signatures) {
      signature.outputs.push_back(signature.outputs[0]);
    }
    return signatures;
  };
  op.aliases = [plain](const ir::OpCall& call) { return plain.aliases(CallOf(plain, call)); };
  return op;
}

}  // namespace zg
