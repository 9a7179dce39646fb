#include "framework/passes/sixteen_bit_casts.h"

namespace zg {

std::vector<ir::Node*> SixteenBitCastsOf(const ir::Value& parameter) {
  std::vector<ir::Node*> casts;
  for (ir::Node* user : parameter.users) {
    if (user->section->kind == ir::SectionKind::kUpdate) continue;
    if (user->op->traits.kind != ir::OpKind::kCast) return {};
    const DType dtype = user->outputs[0]->type.dtype;
    const bool is_same = casts.empty() || dtype == casts[0]->outputs[0]->type.dtype;
    if (!IsFloat(dtype) || dtype == DType::kF32 || !is_same) return {};
    casts.push_back(user);
  }
  return casts;
}

}  // namespace zg
