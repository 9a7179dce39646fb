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
      : shape_(spec.call, /*is_gradient=*/false, method),
        num_sharing_(NumSharingHeads(shape_, spec.threads)) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(num_sharing_, ScratchBytes<ForwardScratch>(shape_));
  }

  Status Run(const KernelArguments& arguments) override {
    ZG_RETURN_IF_ERROR(CheckNumKeys(arguments));
    const void* const k = arguments.inputs[shape_.part_step];
    const void* const v = arguments.inputs[2 * shape_.part_step];
    const auto run = [&](int64_t b, int64_t g, const ForwardScratch& scratch) {
      PackKeys(shape_, {shape_, k, shape_.k, b, g}, {shape_, v, shape_.v, b, g}, scratch);
      for (int64_t h = g * shape_.group(); h < (g + 1) * shape_.group(); ++h) {
        RunHead(shape_, {shape_, arguments.inputs[0], shape_.q, b, h},
                HeadOptions(shape_, arguments, b, h), scratch,
                {shape_, arguments.outputs[0], shape_.out, b, h},
                arguments.output<float>(1) + (b * shape_.heads + h) * shape_.queries);
      }
    };
    ForKeyHeads<ForwardScratch>(shape_, arguments, num_sharing_, run);
    return Status::Ok();
  }

 private:
  // Those of a mask that counts them. The gradient has the same.
  Status CheckNumKeys(const KernelArguments& arguments) const {
    if (shape_.mask_input < 0 || !shape_.mask_counts) return Status::Ok();
    const int64_t* const counts = arguments.input<int64_t>(shape_.mask_input);
    for (int64_t b = 0; b < shape_.batch; ++b) {
      if (counts[b] >= 0 && counts[b] <= shape_.keys) continue;
      return InvalidArgument("{}", NumKeysOutside(counts[b], shape_.keys));
    }
    return Status::Ok();
  }

  const AttentionShape shape_;
  const int num_sharing_;
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
  registry.Register("cached_attention", ByFastestMethod<MakeCachedAttention>);
  for (const std::string name : {"dot_product_attention", "dropout_attention"}) {
    registry.Register(name, ByFastestMethod<MakeAttention>);
    registry.Register(name + "_grad", ByFastestMethod<MakeAttentionGrad>);
    registry.Register(name + "_bias_grad", ByFastestMethod<MakeAttentionBiasGrad>);
  }
}

}  // namespace zg
