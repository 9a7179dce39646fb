#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {
namespace {

// B -> S(dim). Along the first dim with more than one element, the output is a view of the input
// and nothing is done, unless it must be a copy.
class LocalSlice : public Kernel {
 public:
  LocalSlice(const BoxingNode& node, Device* device, PartOfDim own)
      : device_(*device),
        is_view_(!node.node.attributes.Bool("copy") &&
                 IsFirstLongDim(node.input.shape, node.Dim("dim"))),
        view_(ViewDim(node.input, node.Dim("dim"))),
        own_(own) {}

  Status Run(const KernelArguments& arguments) override {
    if (is_view_) return Status::Ok();
    return TakePart(device_, view_, own_, static_cast<const std::byte*>(arguments.inputs[0]),
                    static_cast<std::byte*>(arguments.outputs[0]));
  }

 private:
  Device& device_;
  const bool is_view_;
  const DimView view_;
  const PartOfDim own_;
};

StatusOr<std::unique_ptr<Kernel>> Make(const BoxingContext& context) {
  const BoxingNode& node = context.node();
  return std::unique_ptr<Kernel>(
      new LocalSlice(node, &context.device(), context.PartAlong(node.axes)));
}

}  // namespace

BoxingOp LocalSliceBoxing() {
  return {[](const BoxingNode&) -> int64_t { return 0; }, Make};
}

}  // namespace zg
