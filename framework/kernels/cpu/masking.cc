#include <cstdint>
#include <memory>

#include "framework/kernels/cpu/broadcast_blocks.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/element_bits.h"

namespace zg {
namespace {

using ChooseFunction = void (*)(const void* const* operands, int64_t count, void* out);

// out = operand 1 where operand 0 holds, else operand 2, for elements with the size of T.
template <typename T>
void ChooseBlock(const void* const* operands, int64_t count, void* out) {
  Multiversion([=]() ZG_VERSION {
    const uint8_t* const condition = static_cast<const uint8_t*>(operands[0]);
    const T* const a = static_cast<const T*>(operands[1]);
    const T* const b = static_cast<const T*>(operands[2]);
    T* const y = static_cast<T*>(out);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const T from_a = a[i], from_b = b[i];
      y[i] = condition[i] != 0 ? from_a : from_b;
    }
  });
}

// Also masked_fill, where operand a or b is a number.
class Choose : public Kernel {
 public:
  // Operand i is inputs[order[i]]; -1: the number.
  Choose(const KernelSpec& spec, const int (&order)[3], uint64_t number)
      : order_{order[0], order[1], order[2]},
        number_(number),
        bytes_(SizeOf(spec.outputs[0].dtype)),
        threads_(spec.threads),
        blocks_(spec.outputs[0].shape, {ShapeOf(spec, 0), ShapeOf(spec, 1), ShapeOf(spec, 2)},
                {1, bytes_, bytes_}) {
    WithElements(bytes_, [&](auto zero) { run_ = ChooseBlock<decltype(zero)>; });
  }

  int64_t workspace_bytes() const override { return blocks_.workspace_bytes(threads_); }

  Status Run(const KernelArguments& arguments) override {
    const void* inputs[3];
    for (int i = 0; i < 3; ++i) {
      inputs[i] = order_[i] < 0 ? &number_ : arguments.inputs[order_[i]];
    }
    char* const y = arguments.output<char>(0);
    KernelArguments of_three = arguments;
    of_three.inputs = inputs;
    blocks_.ForEach(of_three, [&](const void* const* operands, int64_t begin, int64_t count) {
      run_(operands, count, y + begin * bytes_);
    });
    return Status::Ok();
  }

 private:
  const Shape* ShapeOf(const KernelSpec& spec, int operand) const {
    return order_[operand] < 0 ? &scalar_ : &spec.call.inputs[order_[operand]].shape;
  }

  const int order_[3];
  const uint64_t number_;
  const int64_t bytes_;
  const int threads_;
  const Shape scalar_;
  const BroadcastBlocks<3> blocks_;
  ChooseFunction run_ = nullptr;
};

StatusOr<std::unique_ptr<Kernel>> MakeWhere(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  const int order[] = {0, 1, 2};
  return std::unique_ptr<Kernel>(std::make_unique<Choose>(spec, order, 0));
}

StatusOr<std::unique_ptr<Kernel>> MakeMaskedFill(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  const uint64_t number = ElementBits(spec.outputs[0].dtype, spec.call.attributes.Float("value"));
  const int fills_where[] = {1, -1, 0}, fills_elsewhere[] = {1, 0, -1};
  return std::unique_ptr<Kernel>(std::make_unique<Choose>(
      spec, spec.call.attributes.Bool("where") ? fills_where : fills_elsewhere, number));
}

}  // namespace

void RegisterMaskingKernels(KernelRegistry& registry) {
  registry.Register("where", MakeWhere);
  registry.Register("masked_fill", MakeMaskedFill);
}

}  // namespace zg
