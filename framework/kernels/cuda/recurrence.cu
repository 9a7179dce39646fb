// Recurrent layers: from element to element, a product of the states with weight, and then the gates,
// with a thread for each channel of each sample.
#include <memory>
#include <type_traits>
#include <utility>

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/matmul.h"
#include "framework/kernels/cuda/rounding.cuh"
#include "framework/kernels/math/recurrence_math.h"
#include "framework/kernels/recurrence_call.h"

namespace zg::cuda {
namespace {

// Element `step` of all samples, of which each has `steps`.
struct ElementShape {
  int64_t channels;  // of all samples
  int64_t hidden;
  int64_t steps;
  int64_t step;
};

// The place of a thread's channel; a gate's channels are `hidden` apart.
struct Place {
  __device__ explicit Place(const ElementShape& shape)
      : index(static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x),
        is_one(index < shape.channels),
        sample(index / shape.hidden),
        channel(index % shape.hidden) {}

  // In the sequences (samples, steps, gates x hidden), and in the rows (samples, gates x hidden).
  __device__ int64_t InSequence(const ElementShape& shape, int64_t step, int gates) const {
    return (sample * shape.steps + step) * gates * shape.hidden + channel;
  }
  __device__ int64_t InRows(const ElementShape& shape, int gates) const {
    return sample * gates * shape.hidden + channel;
  }

  int64_t index;  // in the rows (samples, hidden)
  bool is_one;
  int64_t sample;
  int64_t channel;
};

template <typename T>
struct LstmStep {
  const T* x;
  const T* product;
  const T* first_cells;  // of the first element; null: of another one, or zeros
  float* cells;          // that are carried from element to element
  T* state;
  T* states;
  T* all_cells;
  T* gates;
};

template <typename T>
__global__ void LstmKernel(LstmStep<T> step, ElementShape shape) {
  const Place place(shape);
  if (!place.is_one) return;
  const T* const x = step.x + place.InSequence(shape, shape.step, 4);
  const T* const product = step.product + place.InRows(shape, 4);
  float sums[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    sums[k] = Widen(x[k * shape.hidden]) + Widen(product[k * shape.hidden]);
  }
  const LstmGates own = LstmGates::Of(sums[0], sums[1], sums[2], sums[3]);
  const float before =
      step.first_cells == nullptr ? step.cells[place.index] : Widen(step.first_cells[place.index]);
  const float cell = own.Cell(before);
  const T state = Round<T>(own.State(cell));
  step.cells[place.index] = cell;
  step.state[place.index] = state;
  step.states[place.InSequence(shape, shape.step, 1)] = state;
  step.all_cells[place.InSequence(shape, shape.step, 1)] = Round<T>(cell);
  T* const gates = step.gates + place.InSequence(shape, shape.step, 4);
  gates[0] = Round<T>(own.i);
  gates[shape.hidden] = Round<T>(own.f);
  gates[2 * shape.hidden] = Round<T>(own.g);
  gates[3 * shape.hidden] = Round<T>(own.o);
}

template <typename T>
struct LstmGradStep {
  const T* dh;
  const T* dc;  // null: zeros
  const T* gates;
  const T* cells;
  const T* first_cells;  // null: zeros
  int64_t step_before;   // -1: this is the first element
  const T* dstate;
  float* dcells;  // that are carried from element to element
  T* dproduct;
  T* dx;
  T* dfirst_cells;
};

template <typename T>
__global__ void LstmGradKernel(LstmGradStep<T> step, ElementShape shape) {
  const Place place(shape);
  if (!place.is_one) return;
  const int64_t at = place.InSequence(shape, shape.step, 1);
  const int64_t at_gates = place.InSequence(shape, shape.step, 4);
  const T* const gates = step.gates + at_gates;
  const LstmGates of_channel = {Widen(gates[0]), Widen(gates[shape.hidden]),
                                Widen(gates[2 * shape.hidden]), Widen(gates[3 * shape.hidden])};
  float before = 0.0f;
  if (step.step_before >= 0) {
    before = Widen(step.cells[place.InSequence(shape, step.step_before, 1)]);
  } else if (step.first_cells != nullptr) {
    before = Widen(step.first_cells[place.index]);
  }
  float dcell = step.dcells[place.index];
  if (step.dc != nullptr) dcell += Widen(step.dc[at]);
  const LstmGradient own =
      LstmGradient::Of(of_channel, before, Widen(step.cells[at]),
                       Widen(step.dh[at]) + Widen(step.dstate[place.index]), dcell);
  step.dcells[place.index] = own.cell_before;
  if (step.step_before < 0) step.dfirst_cells[place.index] = Round<T>(own.cell_before);
  T* const dx = step.dx + at_gates;
  T* const dproduct = step.dproduct + place.InRows(shape, 4);
  const T gradients[4] = {Round<T>(own.i), Round<T>(own.f), Round<T>(own.g), Round<T>(own.o)};
#pragma unroll
  for (int k = 0; k < 4; ++k) dx[k * shape.hidden] = dproduct[k * shape.hidden] = gradients[k];
}

template <typename T>
struct GruStep {
  const T* x;
  const T* product;
  const T* state_before;  // may be `state`
  T* state;
  T* states;
  T* gates;
};

template <typename T>
__global__ void GruKernel(GruStep<T> step, ElementShape shape) {
  const Place place(shape);
  if (!place.is_one) return;
  const int64_t hidden = shape.hidden;
  const T* const x = step.x + place.InSequence(shape, shape.step, 3);
  const T* const product = step.product + place.InRows(shape, 3);
  const GruGates own =
      GruGates::Of(Widen(x[0]), Widen(x[hidden]), Widen(x[2 * hidden]), Widen(product[0]),
                   Widen(product[hidden]), Widen(product[2 * hidden]));
  const T state = Round<T>(own.State(Widen(step.state_before[place.index])));
  step.state[place.index] = state;
  step.states[place.InSequence(shape, shape.step, 1)] = state;
  T* const gates = step.gates + place.InSequence(shape, shape.step, 4);
  gates[0] = Round<T>(own.r);
  gates[hidden] = Round<T>(own.z);
  gates[2 * hidden] = Round<T>(own.n);
  gates[3 * hidden] = Round<T>(own.p_n);
}

template <typename T>
struct GruGradStep {
  const T* dh;
  const T* gates;
  const T* states;
  const T* first_state;  // null: zeros
  int64_t step_before;   // -1: this is the first element
  const T* dstate;
  T* direct;
  T* dproduct;
  T* dx;
  T* dproducts;
};

template <typename T>
__global__ void GruGradKernel(GruGradStep<T> step, ElementShape shape) {
  const Place place(shape);
  if (!place.is_one) return;
  const int64_t hidden = shape.hidden;
  const T* const gates = step.gates + place.InSequence(shape, shape.step, 4);
  const GruGates of_channel = {Widen(gates[0]), Widen(gates[hidden]), Widen(gates[2 * hidden]),
                               Widen(gates[3 * hidden])};
  float before = 0.0f;
  if (step.step_before >= 0) {
    before = Widen(step.states[place.InSequence(shape, step.step_before, 1)]);
  } else if (step.first_state != nullptr) {
    before = Widen(step.first_state[place.index]);
  }
  const float dh =
      Widen(step.dh[place.InSequence(shape, shape.step, 1)]) + Widen(step.dstate[place.index]);
  const GruGradient own = GruGradient::Of(of_channel, before, dh);
  step.direct[place.index] = Round<T>(own.before);
  const int64_t at = place.InSequence(shape, shape.step, 3);
  T* const dproduct = step.dproduct + place.InRows(shape, 3);
  const T of_x[3] = {Round<T>(own.r), Round<T>(own.z), Round<T>(own.n)};
  const T of_product[3] = {of_x[0], of_x[1], Round<T>(own.p_n)};
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    step.dx[at + k * hidden] = of_x[k];
    step.dproducts[at + k * hidden] = dproduct[k * hidden] = of_product[k];
  }
}

template <typename T>
__global__ void RnnKernel(const T* x, const T* product, T* state, T* states, RnnUnit unit,
                          ElementShape shape) {
  const Place place(shape);
  if (!place.is_one) return;
  const int64_t at = place.InSequence(shape, shape.step, 1);
  states[at] = state[place.index] =
      Round<T>(unit.State(Widen(x[at]) + Widen(product[place.index])));
}

template <typename T>
__global__ void RnnGradKernel(const T* dh, const T* states, const T* dstate, T* dproduct, T* dx,
                              RnnUnit unit, ElementShape shape) {
  const Place place(shape);
  if (!place.is_one) return;
  const int64_t at = place.InSequence(shape, shape.step, 1);
  dx[at] = dproduct[place.index] =
      Round<T>(unit.Gradient(Widen(states[at]), Widen(dh[at]) + Widen(dstate[place.index])));
}

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
      : Layer(spec, std::move(product)), unit_{spec.call.attributes.Bool("relu")} {}

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
      : Gradient(spec, std::move(product)), unit_{spec.call.attributes.Bool("relu")} {}

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
