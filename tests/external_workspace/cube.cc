#include "cube.h"

#include "framework/ir/builder.h"
#include "framework/ir/op_registry.h"
#include "framework/kernels/cpu/cpu_kernels.h"

namespace {

namespace ir = zg::ir;

// Every operand is split along the same dim.
std::vector<ir::SbpSignature> SplitAnyDim(const ir::OpCall& call) {
  std::vector<ir::SbpSignature> signatures;
  for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) {
    const zg::Sbp split = zg::Sbp::S(dim);
    signatures.push_back({std::vector<zg::Sbp>(call.inputs.size(), split), {split}});
  }
  return signatures;
}

ir::OpDef Elementwise(std::string name, std::string doc, int num_inputs) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.min_inputs = op.max_inputs = num_inputs;
  op.infer_shape = [](const ir::OpCall& call) -> zg::StatusOr<std::vector<zg::TensorType>> {
    for (const zg::TensorType& input : call.inputs) {
      if (input.dtype != zg::DType::kF32 || input.shape != call.inputs[0].shape) {
        return zg::InvalidArgument("{}: inputs are not f32 of one shape", call.op->name);
      }
    }
    return std::vector<zg::TensorType>{call.inputs[0]};
  };
  op.sbp_signatures = SplitAnyDim;
  return op;
}

ir::OpDef Cube() {
  ir::OpDef op = Elementwise("cube", "y = x^3", 1);
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return zg::Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op("cube_grad", {context.input(0), context.output_gradient()}));
    return zg::Status::Ok();
  };
  return op;
}

ir::OpDef CubeGrad() {
  ir::OpDef op = Elementwise("cube_grad", "dx = 3 x^2 dy", 2);
  op.not_differentiable = "second derivatives are not supported";
  return op;
}

template <typename F>
class ElementwiseKernel : public zg::Kernel {
 public:
  explicit ElementwiseKernel(const zg::KernelSpec& spec)
      : num_elements_(spec.outputs[0].shape.num_elements()),
        has_dy_(spec.call.inputs.size() == 2) {}

  zg::Status Run(const zg::KernelArguments& arguments) override {
    const float* const x = arguments.input<float>(0);
    const float* const dy = has_dy_ ? arguments.input<float>(1) : x;
    float* const out = arguments.output<float>(0);
    for (int64_t i = 0; i < num_elements_; ++i) out[i] = F()(x[i], dy[i]);
    return zg::Status::Ok();
  }

 private:
  const int64_t num_elements_;
  const bool has_dy_;
};

template <typename F>
zg::StatusOr<std::unique_ptr<zg::Kernel>> Make(const zg::KernelSpec& spec) {
  return std::unique_ptr<zg::Kernel>(std::make_unique<ElementwiseKernel<F>>(spec));
}

struct CubeOf {
  float operator()(float x, float) const { return x * x * x; }
};
struct CubeGradOf {
  float operator()(float x, float dy) const { return 3.0f * x * x * dy; }
};

}  // namespace

void RegisterCube() {
  ir::OpRegistry::Global().Register(Cube());
  ir::OpRegistry::Global().Register(CubeGrad());
  zg::RegisterCpuKernel("cube", Make<CubeOf>);
  zg::RegisterCpuKernel("cube_grad", Make<CubeGradOf>);
}

zg::Var cube(zg::Var x) { return zg::nn::append("cube", {x}); }
