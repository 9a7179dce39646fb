#include "framework/ops/dims_in_parts.h"

#include <vector>

namespace zg {

void ComputeOwnParts(ir::PartsContext& context, size_t part) {
  const ir::Node& node = context.node();
  if (node.inputs.size() > part) return;
  std::vector<ir::Value*> inputs = node.inputs;
  inputs.push_back(context.Part());
  context.set_output(0, context.builder().Op(node.op->name, inputs, context.WithParts()));
}

StatusOr<int64_t> SizeOfOwnParts(const ir::OpCall& call, const InputNames& names, size_t part,
                                 const std::string& attribute) {
  const int64_t size = call.attributes.Int(attribute);
  if (size < 0) {
    return InvalidArgument("{}: {} is {}, expected {} >= 0", call.op->name, attribute, size,
                           attribute);
  }
  const int64_t num_parts = call.attributes.Int("parts");
  ZG_RETURN_IF_ERROR(CheckPart(call, names, part, size));
  if (num_parts < 1 || size % num_parts != 0) {
    return InvalidArgument("{}: {} {} do not divide into {} parts", call.op->name, size, attribute,
                           num_parts);
  }
  return size / num_parts * (call.inputs.size() > part ? call.inputs[part].shape.dim(0) : 1);
}

int64_t SizeOfAllParts(const ir::Node& node, size_t part, int64_t own) {
  if (node.inputs.size() <= part) return own;
  return own / node.inputs[part]->type.shape.dim(0) * node.attributes.Int("parts");
}

}  // namespace zg
