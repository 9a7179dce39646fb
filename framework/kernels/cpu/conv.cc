#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "framework/kernels/conv_shape.h"
#include "framework/kernels/cpu/depthwise_conv.h"
#include "framework/kernels/cpu/half_grad_weight.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/window_grad_weight.h"
#include "framework/kernels/cpu/window_product.h"

namespace zg {
namespace {

class Conv2d : public Kernel {
 public:
  explicit Conv2d(const KernelSpec& spec)
      : has_bias_(spec.call.inputs.size() == 3), product_(Make(spec)) {}

  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    product_.Run(arguments.inputs[0], arguments.inputs[1],
                 has_bias_ ? arguments.inputs[2] : nullptr, arguments.outputs[0],
                 arguments.workspace, arguments.threads);
    return Status::Ok();
  }

 private:
  static WindowProduct Make(const KernelSpec& spec) {
    const ConvShape shape = ConvShape::OfForward(spec);
    WindowProductSizes sizes;
    sizes.batch = shape.batch;
    sizes.groups = shape.groups;
    sizes.source_channels = shape.channels;
    sizes.result_channels = shape.outputs;
    sizes.weight = {shape.channels * shape.taps(), shape.taps()};
    sizes.dtype = spec.outputs[0].dtype;
    return WindowProduct(sizes, ForwardWindows(shape), spec.threads);
  }

  const bool has_bias_;
  const WindowProduct product_;
};

class Conv2dGradInput : public Kernel {
 public:
  explicit Conv2dGradInput(const KernelSpec& spec) : product_(Make(spec)) {}

  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    product_.Run(arguments.inputs[0], arguments.inputs[1], nullptr, arguments.outputs[0],
                 arguments.workspace, arguments.threads);
    return Status::Ok();
  }

 private:
  static WindowProduct Make(const KernelSpec& spec) {
    const ConvShape shape = ConvShape::OfGradInput(spec);
    WindowProductSizes sizes;
    sizes.batch = shape.batch;
    sizes.groups = shape.groups;
    sizes.source_channels = shape.outputs;
    sizes.result_channels = shape.channels;
    sizes.weight = {shape.taps(), shape.channels * shape.taps()};
    sizes.dtype = spec.outputs[0].dtype;
    return WindowProduct(sizes, GradInputWindows(shape), spec.threads);
  }

  const WindowProduct product_;
};

// Product: WindowGradWeight or HalfGradWeight.
template <typename Product>
class Conv2dGradWeight : public Kernel {
 public:
  explicit Conv2dGradWeight(const KernelSpec& spec)
      : has_samples_(ConvShape::OfGradWeight(spec).batch > 0),
        output_bytes_(spec.outputs[0].bytes()) {
    const ConvShape shape = ConvShape::OfGradWeight(spec);
    int64_t workspace = 0;
    for (const WeightRange& range : SharedWeights(shape, spec.threads)) {
      parts_.push_back({Product(shape, range, spec.outputs[0].dtype), workspace});
      workspace += WholeLines(parts_.back().product.workspace_bytes());
    }
  }

  int64_t workspace_bytes() const override {
    return parts_.back().workspace + parts_.back().product.workspace_bytes();
  }

  Status Run(const KernelArguments& arguments) override {
    if (!has_samples_) {
      std::memset(arguments.outputs[0], 0, output_bytes_);
      return Status::Ok();
    }
    const auto run = [&](int64_t i, int) {
      parts_[i].product.Run(arguments.inputs[0], arguments.inputs[1], arguments.outputs[0],
                            static_cast<char*>(arguments.workspace) + parts_[i].workspace);
    };
    const auto num_parts = static_cast<int64_t>(parts_.size());
    if (arguments.threads != nullptr) {
      arguments.threads->Run(num_parts, run);
    } else {
      for (int64_t i = 0; i < num_parts; ++i) run(i, 0);
    }
    return Status::Ok();
  }

 private:
  struct Part {
    Product product;
    int64_t workspace;  // begin of its scratch, in bytes
  };

  const bool has_samples_;
  const int64_t output_bytes_;
  std::vector<Part> parts_;
};

StatusOr<std::unique_ptr<Kernel>> MakeConv2d(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  if (IsDepthwise(ConvShape::OfForward(spec))) return MakeDepthwiseConv(spec);
  return MakeKernel<Conv2d>(spec);
}

StatusOr<std::unique_ptr<Kernel>> MakeConv2dGradInput(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  if (IsDepthwise(ConvShape::OfGradInput(spec))) return MakeDepthwiseConvGradInput(spec);
  return MakeKernel<Conv2dGradInput>(spec);
}

StatusOr<std::unique_ptr<Kernel>> MakeConv2dGradWeight(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  if (IsDepthwise(ConvShape::OfGradWeight(spec))) return MakeDepthwiseConvGradWeight(spec);
  if (HalfMethod(spec.outputs[0].dtype) != nullptr) {
    return MakeKernel<Conv2dGradWeight<HalfGradWeight>>(spec);
  }
  return MakeKernel<Conv2dGradWeight<WindowGradWeight>>(spec);
}

}  // namespace

void RegisterConvKernels(KernelRegistry& registry) {
  registry.Register("conv2d", MakeConv2d);
  registry.Register("conv2d_grad_input", MakeConv2dGradInput);
  registry.Register("conv2d_grad_weight", MakeConv2dGradWeight);
}

}  // namespace zg
