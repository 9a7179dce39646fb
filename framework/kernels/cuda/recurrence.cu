// Recurrent layers: from element to element, a product of the states with weight, and then the gates.
#include <memory>
#include <type_traits>
#include <utility>

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/matmul.h"
#include "framework/kernels/cuda/recurrence_steps.cuh"
#include "framework/kernels/recurrence_call.h"

namespace zg::cuda {
namespace {

int64_t AlignedBytes(int64_t bytes) { return CeilDivide(bytes, 256) * 256; }

// What goes from element to element, in the workspace.
struct Carried {
  void* gates;  // (B, G H): the products with weight; in a gradient, what these are multiplied with
  void* state;  // (B, H): h, or its gradient
  void* direct;  // (B, H): in a GRU's gradient, what passes without a product
  float* cells;  // (B, H): c, or its gradient
  void* rest;
};

class RecurrenceKernel : public Kernel {
 public:
  RecurrenceKernel(const KernelSpec& spec, std::unique_ptr<Matmul> product)
      : call_(spec.call), product_(std::move(product)) {}

  int64_t workspace_bytes() const override {
    return AlignedBytes(call_.gates * state_bytes()) + 2 * AlignedBytes(state_bytes()) +
           AlignedBytes(cell_bytes()) + product_->workspace_bytes();
  }

 protected:
  Carried CarriedIn(void* workspace) const {
    char* next = static_cast<char*>(workspace);
    const auto take = [&](int64_t bytes) {
      return std::exchange(next, next + AlignedBytes(bytes));
    };
    Carried carried;
    carried.gates = take(call_.gates * state_bytes());
    carried.state = take(state_bytes());
    carried.direct = take(state_bytes());
    carried.cells = reinterpret_cast<float*>(take(cell_bytes()));
    carried.rest = next;
    return carried;
  }

  Status SetToZero(const Carried& carried, void* stream) const {
    const auto queue = static_cast<cudaStream_t>(stream);
    ZG_RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(carried.state, 0, state_bytes(), queue),
                                  "states were not set to zero"));
    return CudaStatus(cudaMemsetAsync(carried.cells, 0, cell_bytes(), queue),
                      "cells were not set to zero");
  }

  LaunchShape Channels() const { return Threads(call_.samples * call_.hidden); }
  ElementShape At(int64_t step) const {
    return {call_.samples * call_.hidden, call_.hidden, call_.steps, step};
  }

  int64_t state_bytes() const { return call_.samples * call_.hidden * SizeOf(call_.dtype); }
  int64_t cell_bytes() const {
    return call_.samples * call_.hidden * static_cast<int64_t>(sizeof(float));
  }

  const RecurrenceCall call_;
  const std::unique_ptr<Matmul> product_;
};

class Layer : public RecurrenceKernel {
 public:
  Layer(const KernelSpec& spec, std::unique_ptr<Matmul> product)
      : RecurrenceKernel(spec, std::move(product)), has_states_(spec.call.inputs.size() > 3) {}

  Status Run(const KernelArguments& arguments) override {
    const Carried carried = CarriedIn(arguments.workspace);
    if (!has_states_) ZG_RETURN_IF_ERROR(SetToZero(carried, arguments.stream));
    for (int64_t i = 0; i < call_.steps; ++i) {
      const void* const state = i == 0 && has_states_ ? arguments.inputs[3] : carried.state;
      ZG_RETURN_IF_ERROR(
          product_->Run({state, arguments.inputs[1], arguments.inputs[2], carried.gates},
                        carried.rest, arguments.stream));
      ZG_RETURN_IF_ERROR(RunElement(arguments, call_.StepAt(i), state, carried));
    }
    return Status::Ok();
  }

 protected:
  // The gates of all samples at an element, whose products are known; carries the states on.
  virtual Status RunElement(const KernelArguments& arguments, int64_t step,
                            const void* state_before, const Carried& carried) const = 0;
  bool is_first(int64_t step) const { return step == call_.StepAt(0); }

  const bool has_states_;
};

class Gradient : public RecurrenceKernel {
 public:
  using RecurrenceKernel::RecurrenceKernel;

  Status Run(const KernelArguments& arguments) override {
    const Carried carried = CarriedIn(arguments.workspace);
    ZG_RETURN_IF_ERROR(SetToZero(carried, arguments.stream));
    for (int64_t i = call_.steps - 1; i >= 0; --i) {
      const int64_t before = i == 0 ? -1 : call_.StepAt(i - 1);
      ZG_RETURN_IF_ERROR(RunElement(arguments, call_.StepAt(i), before, carried));
      Matmul::Operands operands = {carried.gates, arguments.inputs[1], nullptr,
                                   i == 0 ? arguments.outputs[state_output()] : carried.state};
      if (product_->has_addend()) operands.addend = carried.direct;
      ZG_RETURN_IF_ERROR(product_->Run(operands, carried.rest, arguments.stream));
    }
    return Status::Ok();
  }

 protected:
  // The gradients of the gates of all samples at an element, from what later elements have carried.
  // The element before it is `before`; -1: there is none.
  virtual Status RunElement(const KernelArguments& arguments, int64_t step, int64_t before,
                            const Carried& carried) const = 0;
  virtual int state_output() const { return 1; }
};

class Lstm : public Layer {
 public:
  using Layer::Layer;

 private:
  Status RunElement(const KernelArguments& arguments, int64_t step, const void*,
                    const Carried& carried) const override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const LstmStep<T> operands = {arguments.input<T>(0),
                                    static_cast<const T*>(carried.gates),
                                    is_first(step) && has_states_ ? arguments.input<T>(4) : nullptr,
                                    carried.cells,
                                    static_cast<T*>(carried.state),
                                    arguments.output<T>(0),
                                    arguments.output<T>(1),
                                    arguments.output<T>(2)};
      return Launch(LstmKernel<T>, Channels(), arguments.stream, operands, At(step));
    });
  }
};

class LstmGrad : public Gradient {
 public:
  LstmGrad(const KernelSpec& spec, std::unique_ptr<Matmul> product)
      : Gradient(spec, std::move(product)), operands_(spec.call) {}

 private:
  Status RunElement(const KernelArguments& arguments, int64_t step, int64_t before,
                    const Carried& carried) const override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const LstmGradStep<T> operands = {
          arguments.input<T>(0),
          operands_.dc < 0 ? nullptr : arguments.input<T>(operands_.dc),
          arguments.input<T>(2),
          arguments.input<T>(3),
          operands_.c < 0 ? nullptr : arguments.input<T>(operands_.c),
          before,
          static_cast<const T*>(carried.state),
          carried.cells,
          static_cast<T*>(carried.gates),
          arguments.output<T>(0),
          arguments.output<T>(2)};
      return Launch(LstmGradKernel<T>, Channels(), arguments.stream, operands, At(step));
    });
  }

  const LstmGradOperands operands_;
};

class Gru : public Layer {
 public:
  using Layer::Layer;

 private:
  Status RunElement(const KernelArguments& arguments, int64_t step, const void* state_before,
                    const Carried& carried) const override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const GruStep<T> operands = {arguments.input<T>(0),
                                   static_cast<const T*>(carried.gates),
                                   static_cast<const T*>(state_before),
                                   static_cast<T*>(carried.state),
                                   arguments.output<T>(0),
                                   arguments.output<T>(1)};
      return Launch(GruKernel<T>, Channels(), arguments.stream, operands, At(step));
    });
  }
};

class GruGrad : public Gradient {
 public:
  GruGrad(const KernelSpec& spec, std::unique_ptr<Matmul> product)
      : Gradient(spec, std::move(product)), has_state_(spec.call.inputs.size() > 4) {}

 private:
  int state_output() const override { return 2; }

  Status RunElement(const KernelArguments& arguments, int64_t step, int64_t before,
                    const Carried& carried) const override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const GruGradStep<T> operands = {arguments.input<T>(0),
                                       arguments.input<T>(2),
                                       arguments.input<T>(3),
                                       has_state_ ? arguments.input<T>(4) : nullptr,
                                       before,
                                       static_cast<const T*>(carried.state),
                                       static_cast<T*>(carried.direct),
                                       static_cast<T*>(carried.gates),
                                       arguments.output<T>(0),
                                       arguments.output<T>(1)};
      return Launch(GruGradKernel<T>, Channels(), arguments.stream, operands, At(step));
    });
  }

  const bool has_state_;
};

class Rnn : public Layer {
 public:
  Rnn(const KernelSpec& spec, std::unique_ptr<Matmul> product)
      : Layer(spec, std::move(product)), unit_{spec.call.attributes.Bool("uses_relu")} {}

 private:
  Status RunElement(const KernelArguments& arguments, int64_t step, const void*,
                    const Carried& carried) const override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      return Launch(RnnKernel<T>, Channels(), arguments.stream, arguments.input<T>(0),
                    static_cast<const T*>(carried.gates), static_cast<T*>(carried.state),
                    arguments.output<T>(0), unit_, At(step));
    });
  }

  const RnnUnit unit_;
};

class RnnGrad : public Gradient {
 public:
  RnnGrad(const KernelSpec& spec, std::unique_ptr<Matmul> product)
      : Gradient(spec, std::move(product)), unit_{spec.call.attributes.Bool("uses_relu")} {}

 private:
  Status RunElement(const KernelArguments& arguments, int64_t step, int64_t,
                    const Carried& carried) const override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      return Launch(RnnGradKernel<T>, Channels(), arguments.stream, arguments.input<T>(0),
                    arguments.input<T>(2), static_cast<const T*>(carried.state),
                    static_cast<T*>(carried.gates), arguments.output<T>(0), unit_, At(step));
    });
  }

  const RnnUnit unit_;
};

// The product of one element: of all samples' states with weight (G H, H), or in a gradient of the
// gates' gradients.
template <typename KernelType, bool kTf32>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  constexpr bool kIsGradient = std::is_base_of_v<Gradient, KernelType>;
  const RecurrenceCall call(spec.call);
  MatmulShape shape;
  shape.rows = call.samples;
  shape.columns = kIsGradient ? call.hidden : call.gates * call.hidden;
  shape.depth = kIsGradient ? call.gates * call.hidden : call.hidden;
  shape.transpose_b = !kIsGradient;
  shape.has_bias = !kIsGradient;
  shape.has_addend = std::is_same_v<KernelType, GruGrad>;
  shape.dtype = call.dtype;
  shape.tf32 = kTf32;
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> product, Matmul::Make(shape, spec.gemm_choices));
  return std::unique_ptr<Kernel>(std::make_unique<KernelType>(spec, std::move(product)));
}

template <bool kTf32>
void RegisterLayers(KernelRegistry& registry) {
  registry.Register("lstm", Make<Lstm, kTf32>);
  registry.Register("lstm_grad", Make<LstmGrad, kTf32>);
  registry.Register("gru", Make<Gru, kTf32>);
  registry.Register("gru_grad", Make<GruGrad, kTf32>);
  registry.Register("rnn", Make<Rnn, kTf32>);
  registry.Register("rnn_grad", Make<RnnGrad, kTf32>);
}

}  // namespace

void RegisterRecurrenceKernels(KernelRegistry& registry) {
  registry.options().tf32 ? RegisterLayers<true>(registry) : RegisterLayers<false>(registry);
}

}  // namespace zg::cuda
