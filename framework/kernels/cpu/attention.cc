#include "framework/kernels/cpu/attention.h"

#include <cstdint>
#include <memory>
#include <string>

#include "framework/kernels/cpu/attention_head.h"
#include "framework/kernels/cpu/gemm.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

class Attention : public Kernel {
 public:
  Attention(const KernelSpec& spec, const GemmMethod& method)
      : shape_(spec.call, /*is_gradient=*/false, method) {}

  int64_t workspace_bytes() const override { return ScratchBytes<ForwardScratch>(shape_); }

  Status Run(const KernelArguments& arguments) override {
    const GemmScope scope(*shape_.method);
    Carver carver(arguments.workspace);
    const ForwardScratch scratch(shape_, carver);
    const void* const k = arguments.inputs[shape_.part_step];
    const void* const v = arguments.inputs[2 * shape_.part_step];
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t g = 0; g < shape_.key_heads; ++g) {
        PackKeys(shape_, {shape_, k, shape_.k, b, g}, {shape_, v, shape_.v, b, g}, scratch);
        for (int64_t h = g * shape_.group(); h < (g + 1) * shape_.group(); ++h) {
          RunHead(shape_, {shape_, arguments.inputs[0], shape_.q, b, h},
                  HeadOptions(shape_, arguments, b, h), scratch,
                  {shape_, arguments.outputs[0], shape_.out, b, h},
                  arguments.output<float>(1) + (b * shape_.heads + h) * shape_.queries);
        }
      }
    }
    return Status::Ok();
  }

 private:
  const AttentionShape shape_;
};

template <std::unique_ptr<Kernel> (*make)(const KernelSpec& spec, const GemmMethod& method)>
StatusOr<std::unique_ptr<Kernel>> ByFastestMethod(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return make(spec, FastestGemmMethod(spec.outputs[0].dtype));
}

}  // namespace

std::unique_ptr<Kernel> MakeAttention(const KernelSpec& spec, const GemmMethod& method) {
  return std::make_unique<Attention>(spec, method);
}

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Register("attention", ByFastestMethod<MakeAttention>);
  registry.Register("attention_grad", ByFastestMethod<MakeAttentionGrad>);
  for (const std::string name : {"dot_product_attention", "dropout_attention"}) {
    registry.Register(name, ByFastestMethod<MakeAttention>);
    registry.Register(name + "_grad", ByFastestMethod<MakeAttentionGrad>);
    registry.Register(name + "_bias_grad", ByFastestMethod<MakeAttentionBiasGrad>);
  }
}

}  // namespace zg
