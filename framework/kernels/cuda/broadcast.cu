#include <memory>

#include "framework/kernels/cuda/column_sum.h"
#include "framework/kernels/cuda/packs.cuh"

namespace zg::cuda {
namespace {

// y[l, r] = x[l, r] + bias[r]. The output may be x.
template <typename T>
struct AddBroadcastBody {
  const T* x;
  const T* bias;
  T* y;
  int64_t columns;  // a multiple of the pack's size unless that is 1

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    Floats<kCount> values = LoadFloats<kCount>(x + begin);
    const Floats<kCount> terms = LoadFloats<kCount>(bias + begin % columns);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += terms[i];
    StoreFloats(values, y + begin);
  }
};

class AddBroadcast : public Kernel {
 public:
  explicit AddBroadcast(const KernelSpec& spec)
      : type_(spec.outputs[0]), columns_(spec.call.inputs[1].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      constexpr int kPack = kPackOf<T>;
      const AddBroadcastBody<T> body = {arguments.input<T>(0), arguments.input<T>(1),
                                        arguments.output<T>(0), columns_};
      return RunPacks<kPack>(body,
                             columns_ % kPack == 0 && AreAligned(16, body.x, body.bias, body.y),
                             type_.shape.num_elements(), arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const int64_t columns_;
};

// y[r] = sum over l of x[l, r].
StatusOr<std::unique_ptr<Kernel>> MakeSumLeading(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  MatrixShape shape;
  shape.columns = spec.outputs[0].shape.num_elements();
  shape.rows = shape.columns == 0 ? 0 : spec.call.inputs[0].shape.num_elements() / shape.columns;
  return std::unique_ptr<Kernel>(std::make_unique<ColumnSum>(spec.outputs[0].dtype, shape));
}

}  // namespace

void RegisterBroadcastKernels(KernelRegistry& registry) {
  registry.Register("add_broadcast", MakeKernel<AddBroadcast>);
  registry.Register("sum_leading", MakeSumLeading);
}

}  // namespace zg::cuda
