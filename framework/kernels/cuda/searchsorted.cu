#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/any_element.h"
#include "framework/kernels/math/searching.h"

namespace zg::cuda {
namespace {

// A thread finds the place of one value.
template <typename T>
struct SearchBody {
  const T* sorted;
  const T* values;
  int64_t* y;
  int64_t size, row;  // elements of a sequence, values that it serves
  bool right;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int64_t at = begin + i;
      y[at] = CountBefore(sorted + at / row * size, size, values[at], right);
    }
  }
};

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
    return WithAnyType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const SearchBody<T> body = {arguments.input<T>(0),
                                  arguments.input<T>(1),
                                  arguments.output<int64_t>(0),
                                  size_,
                                  row,
                                  right_};
      return RunPacks<1>(body, true, values_.num_elements(), arguments.stream);
    });
  }

 private:
  const DType dtype_;
  const int64_t size_;
  const bool is_vector_;
  const Shape values_;
  const bool right_;
};

}  // namespace

void RegisterSearchsortedKernels(KernelRegistry& registry) {
  registry.Register("searchsorted", MakeKernel<Searchsorted>);
}

}  // namespace zg::cuda
