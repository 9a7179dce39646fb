#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {
namespace {

// S(from) -> S(to): cuts the local part along `to`, exchanges, and joins what arrives along `from`.
class AllToAll : public Kernel {
 public:
  AllToAll(const BoxingNode& node, Device* device, Group* group, ArenaOperand workspace)
      : device_(*device),
        group_(*group),
        name_(node.name),
        local_bytes_(node.input.bytes()),
        part_bytes_(local_bytes_ / group->size()),
        cut_(ViewDim(node.input, node.Dim("to"))),
        join_(ViewDim(node.output, node.Dim("from"))),
        sent_(workspace),
        received_{workspace.offset + local_bytes_, 0} {}

  Status Run(const KernelArguments& arguments) override {
    auto* const sent = static_cast<std::byte*>(arguments.workspace);
    const std::byte* const received = sent + local_bytes_;
    ZG_RETURN_IF_ERROR(TakeParts(device_, cut_, group_.size(),
                                 static_cast<const std::byte*>(arguments.inputs[0]), sent));
    ZG_RETURN_IF_ERROR(group_.AllToAll(name_, sent_, received_, part_bytes_));
    return PutParts(device_, join_, group_.size(), received,
                    static_cast<std::byte*>(arguments.outputs[0]));
  }

 private:
  Device& device_;
  Group& group_;
  const std::string name_;
  const int64_t local_bytes_;
  const int64_t part_bytes_;
  const DimView cut_;
  const DimView join_;
  const ArenaOperand sent_;
  const ArenaOperand received_;
};

StatusOr<std::unique_ptr<Kernel>> Make(const BoxingContext& context) {
  const BoxingNode& node = context.node();
  ZG_ASSIGN_OR_RETURN(Group* const group, context.GroupAlong(node.axes));
  return std::unique_ptr<Kernel>(new AllToAll(node, &context.device(), group, context.Workspace()));
}

}  // namespace

BoxingOp AllToAllBoxing() {
  return {[](const BoxingNode& node) -> int64_t { return 2 * node.input.bytes(); }, Make};
}

}  // namespace zg
