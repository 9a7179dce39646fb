#include "framework/ir/parts_context.h"

namespace zg::ir {

Value* PartsContext::Part() {
  const std::string name = node_.outputs[0]->name + ".part";
  Value* numbers = builder_.Op("iota", {}, {{"size", int64_t{num_parts()}}}, name);
  if (numbers == nullptr) return nullptr;
  NdSbp sbp = AllBroadcast(builder_.graph().mesh());
  sbp[axis_] = Sbp::S(0);
  return builder_.Place(numbers, sbp, name + ".own");
}

Attributes PartsContext::WithParts() const {
  Attributes attributes = node_.attributes;
  attributes.Set("parts", int64_t{num_parts()});
  return attributes;
}

}  // namespace zg::ir
