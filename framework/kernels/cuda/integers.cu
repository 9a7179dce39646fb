#include "framework/kernels/cuda/pair_body.cuh"
#include "framework/kernels/math/integer_math.h"

namespace zg::cuda {
namespace {

template <IntegerOperation kOperation>
struct Compute {
  __device__ int64_t operator()(int64_t a, int64_t b) const {
    return IntegerResult<kOperation>(a, b);
  }
};

template <IntegerOperation kOperation>
class Integers : public Kernel {
 public:
  explicit Integers(const KernelSpec& spec)
      : call_(spec), value_(spec.call.attributes.Int("value")) {}

  Status Run(const KernelArguments& arguments) override {
    return call_.Run<kPackOf<int64_t>, int64_t>(arguments, Compute<kOperation>(), value_);
  }

 private:
  const PairCall call_;
  const int64_t value_;
};

}  // namespace

void RegisterIntegersKernels(KernelRegistry& registry) {
  registry.Register("integer_add", MakeKernel<Integers<IntegerOperation::kAdd>>);
  registry.Register("integer_subtract", MakeKernel<Integers<IntegerOperation::kSubtract>>);
  registry.Register("integer_multiply", MakeKernel<Integers<IntegerOperation::kMultiply>>);
  registry.Register("integer_maximum", MakeKernel<Integers<IntegerOperation::kMaximum>>);
  registry.Register("integer_minimum", MakeKernel<Integers<IntegerOperation::kMinimum>>);
  registry.Register("floor_divide", MakeKernel<Integers<IntegerOperation::kFloorDivide>>);
  registry.Register("remainder", MakeKernel<Integers<IntegerOperation::kRemainder>>);
}

}  // namespace zg::cuda
