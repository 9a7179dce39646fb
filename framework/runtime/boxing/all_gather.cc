#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {
namespace {

bool BringsDimToFront(const BoxingNode& node) {
  return !IsFirstLongDim(node.input.shape, node.Dim("dim"));
}

// S(dim) -> B.
class AllGather : public Kernel {
 public:
  AllGather(const BoxingNode& node, Device* device, Group* group, ArenaOperand input,
            ArenaOperand output, ArenaOperand workspace)
      : device_(*device),
        group_(*group),
        name_(node.name),
        part_bytes_(node.input.bytes()),
        puts_parts_(BringsDimToFront(node)),
        view_(ViewDim(node.output, node.Dim("dim"))),
        input_(input),
        gathered_(puts_parts_ ? workspace : output) {}

  Status Run(const KernelArguments& arguments) override {
    ZG_RETURN_IF_ERROR(group_.AllGather(name_, input_, gathered_, part_bytes_));
    if (!puts_parts_) return Status::Ok();
    return PutParts(device_, view_, group_.size(),
                    static_cast<const std::byte*>(arguments.workspace),
                    static_cast<std::byte*>(arguments.outputs[0]));
  }

 private:
  Device& device_;
  Group& group_;
  const std::string name_;
  const int64_t part_bytes_;
  const bool puts_parts_;
  const DimView view_;
  const ArenaOperand input_;
  const ArenaOperand gathered_;
};

StatusOr<std::unique_ptr<Kernel>> Make(const BoxingContext& context) {
  const BoxingNode& node = context.node();
  ZG_ASSIGN_OR_RETURN(Group* const group, context.GroupAlong(node.axes));
  ZG_ASSIGN_OR_RETURN(const ArenaOperand input, context.OperandOf(node.node.inputs[0], node.axes));
  ZG_ASSIGN_OR_RETURN(const ArenaOperand output,
                      context.OperandOf(node.node.outputs[0], node.axes));
  return std::unique_ptr<Kernel>(
      new AllGather(node, &context.device(), group, input, output, context.Workspace()));
}

}  // namespace

BoxingOp AllGatherBoxing() {
  return {[](const BoxingNode& node) -> int64_t {
            return BringsDimToFront(node) ? node.output.bytes() : 0;
          },
          Make};
}

}  // namespace zg
