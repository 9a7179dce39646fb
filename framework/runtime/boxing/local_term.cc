#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {
namespace {

// B -> P: the first rank along the axis keeps the value, the others hold zeros.
class KeepOnFirst : public Kernel {
 public:
  KeepOnFirst(const BoxingNode& node, Device* device, PartOfDim own)
      : device_(*device), bytes_(node.output.bytes()), is_first_(own.index == 0) {}

  Status Run(const KernelArguments& arguments) override {
    if (is_first_) return device_.Copy(arguments.outputs[0], arguments.inputs[0], bytes_);
    return device_.Zero(arguments.outputs[0], bytes_);
  }

 private:
  Device& device_;
  const int64_t bytes_;
  const bool is_first_;
};

// S(dim) -> P: every rank pads its part with zeros.
class PadWithZeros : public Kernel {
 public:
  PadWithZeros(const BoxingNode& node, Device* device, PartOfDim own)
      : device_(*device),
        bytes_(node.output.bytes()),
        view_(ViewDim(node.output, node.Dim("dim"))),
        own_(own) {}

  Status Run(const KernelArguments& arguments) override {
    ZG_RETURN_IF_ERROR(device_.Zero(arguments.outputs[0], bytes_));
    return PutPart(device_, view_, own_, static_cast<const std::byte*>(arguments.inputs[0]),
                   static_cast<std::byte*>(arguments.outputs[0]));
  }

 private:
  Device& device_;
  const int64_t bytes_;
  const DimView view_;
  const PartOfDim own_;
};

StatusOr<std::unique_ptr<Kernel>> Make(const BoxingContext& context) {
  const BoxingNode& node = context.node();
  const PartOfDim own = context.PartAlong(node.axes);
  if (node.Dim("dim") < 0) {
    return std::unique_ptr<Kernel>(new KeepOnFirst(node, &context.device(), own));
  }
  return std::unique_ptr<Kernel>(new PadWithZeros(node, &context.device(), own));
}

}  // namespace

BoxingOp LocalTermBoxing() {
  return {[](const BoxingNode&) -> int64_t { return 0; }, Make};
}

}  // namespace zg
