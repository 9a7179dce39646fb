#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

class Cast : public Kernel {
 public:
  explicit Cast(const KernelSpec& spec)
      : from_(spec.call.inputs[0].dtype),
        to_(spec.outputs[0].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    ConvertFloats(from_, arguments.inputs[0], to_, arguments.outputs[0], num_elements_);
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
