#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/any_element.h"
#include "framework/kernels/math/searching.h"

namespace zg {
namespace {

class Searchsorted : public Kernel {
 public:
  explicit Searchsorted(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        size_(spec.call.inputs[0].shape.dim(-1)),
        is_vector_(spec.call.inputs[0].shape.num_dims() == 1),
        values_(spec.call.inputs[1].shape),
        right_(spec.call.attributes.Bool("right")) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t row = is_vector_ ? values_.num_elements() : values_.dim(-1);
    WithAnyType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const sorted = arguments.input<T>(0);
      const T* const values = arguments.input<T>(1);
      int64_t* const y = arguments.output<int64_t>(0);
      ForRanges(arguments.threads, values_.num_elements(), kElementUnit, 16,
                [&](int64_t begin, int64_t end, int) {
                  for (int64_t i = begin; i < end; ++i) {
                    y[i] = CountBefore(sorted + i / row * size_, size_, values[i], right_);
                  }
                });
    });
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const int64_t size_;  // of each sequence
  const bool is_vector_;
  const Shape values_;
  const bool right_;
};

}  // namespace

void RegisterSearchsortedKernels(KernelRegistry& registry) {
  registry.Register("searchsorted", MakeKernel<Searchsorted>);
}

}  // namespace zg
