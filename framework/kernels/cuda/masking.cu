#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/element_bits.h"
#include "framework/kernels/strided_dims.h"

namespace zg::cuda {
namespace {

// y = a where the condition holds, else b; one of them may be a number, where the pointer is null.
template <typename T>
struct ChooseBody {
  const uint8_t* condition;
  const T* a;
  const T* b;
  T* y;
  T number;
  StridedDims<3> dims;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool takes_a = condition[dims.OffsetOf(0, begin + i)] != 0;
      const T* const from = takes_a ? a : b;
      y[begin + i] = from == nullptr ? number : from[dims.OffsetOf(takes_a ? 1 : 2, begin + i)];
    }
  }
};

class Choose : public Kernel {
 public:
  // Operand i is inputs[order[i]]; -1: the number.
  Choose(const KernelSpec& spec, const int (&order)[3], uint64_t number)
      : order_{order[0], order[1], order[2]},
        number_(number),
        bytes_(SizeOf(spec.outputs[0].dtype)),
        num_elements_(spec.outputs[0].shape.num_elements()) {
    const Shape scalar;
    const auto shape_of = [&](int operand) {
      return order[operand] < 0 ? &scalar : &spec.call.inputs[order[operand]].shape;
    };
    dims_ = BroadcastDims<3>(spec.outputs[0].shape, {shape_of(0), shape_of(1), shape_of(2)});
  }

  Status Run(const KernelArguments& arguments) override {
    return WithElements(bytes_, [&](auto zero) {
      using T = decltype(zero);
      const auto operand = [&](int i) {
        return order_[i] < 0 ? nullptr : arguments.input<T>(order_[i]);
      };
      const ChooseBody<T> body = {arguments.input<uint8_t>(order_[0]),
                                  operand(1),
                                  operand(2),
                                  arguments.output<T>(0),
                                  static_cast<T>(number_),
                                  dims_};
      return RunPacks<1>(body, true, num_elements_, arguments.stream);
    });
  }

 private:
  const int order_[3];
  const uint64_t number_;
  const int64_t bytes_;
  const int64_t num_elements_;
  StridedDims<3> dims_;
};

StatusOr<std::unique_ptr<Kernel>> MakeWhere(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  const int order[] = {0, 1, 2};
  return std::unique_ptr<Kernel>(std::make_unique<Choose>(spec, order, 0));
}

StatusOr<std::unique_ptr<Kernel>> MakeMaskedFill(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
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

}  // namespace zg::cuda
