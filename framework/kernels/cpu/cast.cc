#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/any_element.h"

namespace zg {
namespace {

template <typename From, typename To>
void ConvertElements(const From* x, int64_t count, To* y) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = ElementFrom<To>::Of(NumberOf(x[i]));
  });
}

class Cast : public Kernel {
 public:
  explicit Cast(const KernelSpec& spec)
      : from_(spec.call.inputs[0].dtype),
        to_(spec.outputs[0].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    if (IsFloat(from_) && IsFloat(to_)) {
      ConvertFloats(from_, arguments.inputs[0], to_, arguments.outputs[0], num_elements_);
      return Status::Ok();
    }
    WithAnyType(from_, [&](auto from) {
      WithAnyType(to_, [&](auto to) {
        ConvertElements(arguments.input<decltype(from)>(0), num_elements_,
                        arguments.output<decltype(to)>(0));
      });
    });
    return Status::Ok();
  }

 private:
  const DType from_;
  const DType to_;
  const int64_t num_elements_;
};

}  // namespace

void RegisterCastKernels(KernelRegistry& registry) { registry.Register("cast", MakeKernel<Cast>); }

}  // namespace zg
