#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/any_element.h"
#include "framework/kernels/strided_dims.h"

namespace zg::cuda {
namespace {

// Packs of results, which are bytes; operands may be broadcast. `b` is null for a number.
template <typename T>
struct CompareBody {
  Comparison comparison;
  const T* a;
  const T* b;
  Truth* y;
  T value;
  StridedDims<2> dims;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    Pack<Truth, kCount> pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const T left = a[dims.OffsetOf(0, begin + i)];
      const T right = b == nullptr ? value : b[dims.OffsetOf(1, begin + i)];
      pack.values[i].byte = Holds(comparison, NumberOf(left), NumberOf(right)) ? 1 : 0;
    }
    *reinterpret_cast<Pack<Truth, kCount>*>(y + begin) = pack;
  }
};

template <Comparison kComparison>
class Compare : public Kernel {
 public:
  explicit Compare(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        has_two_(spec.call.inputs.size() == 2),
        num_elements_(spec.outputs[0].shape.num_elements()) {
    const Shape& first = spec.call.inputs[0].shape;
    const Shape& last = spec.call.inputs.back().shape;
    dims_ = BroadcastDims<2>(spec.outputs[0].shape, {&first, &last});
    if (!has_two_) value_ = spec.call.attributes.Float("value");
  }

  Status Run(const KernelArguments& arguments) override {
    return WithAnyType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const CompareBody<T> body = {kComparison,
                                   arguments.input<T>(0),
                                   has_two_ ? arguments.input<T>(1) : nullptr,
                                   arguments.output<Truth>(0),
                                   ElementFrom<T>::Of(value_),
                                   dims_};
      return RunPacks<4>(body, AreAligned(4, body.y), num_elements_, arguments.stream);
    });
  }

 private:
  const DType dtype_;
  const bool has_two_;
  const int64_t num_elements_;
  StridedDims<2> dims_;
  double value_ = 0.0;
};

}  // namespace

void RegisterCompareKernels(KernelRegistry& registry) {
  registry.Register("equal", MakeKernel<Compare<Comparison::kEqual>>);
  registry.Register("not_equal", MakeKernel<Compare<Comparison::kNotEqual>>);
  registry.Register("less", MakeKernel<Compare<Comparison::kLess>>);
  registry.Register("less_equal", MakeKernel<Compare<Comparison::kLessEqual>>);
  registry.Register("greater", MakeKernel<Compare<Comparison::kGreater>>);
  registry.Register("greater_equal", MakeKernel<Compare<Comparison::kGreaterEqual>>);
  registry.Register("logical_and", MakeKernel<Compare<Comparison::kBoth>>);
  registry.Register("logical_or", MakeKernel<Compare<Comparison::kEither>>);
}

}  // namespace zg::cuda
