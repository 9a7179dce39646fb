// One element of all samples in each of the recurrent layers, and in their gradients: a thread for
// each channel of each sample.
#pragma once

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/rounding.cuh"
#include "framework/kernels/math/recurrence_math.h"

namespace zg::cuda {

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

}  // namespace zg::cuda
