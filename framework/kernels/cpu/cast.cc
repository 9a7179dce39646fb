#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
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
    ForRanges(arguments.threads, num_elements_, kElementUnit, 1,
              [&](int64_t begin, int64_t end, int) {
                Convert(arguments.input<char>(0) + begin * SizeOf(from_), end - begin,
                        arguments.output<char>(0) + begin * SizeOf(to_));
              });
    return Status::Ok();
  }

 private:
  void Convert(const void* x, int64_t count, void* y) const {
    if (IsFloat(from_) && IsFloat(to_)) return ConvertFloats(from_, x, to_, y, count);
    WithAnyType(from_, [&](auto from) {
      WithAnyType(to_, [&](auto to) {
        ConvertElements(static_cast<const decltype(from)*>(x), count,
                        static_cast<decltype(to)*>(y));
      });
    });
  }

  const DType from_;
  const DType to_;
  const int64_t num_elements_;
};

}  // namespace

void RegisterCastKernels(KernelRegistry& registry) { registry.Register("cast", MakeKernel<Cast>); }

}  // namespace zg
