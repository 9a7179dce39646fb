// One channel of one element of the recurrent layers (framework/ops/recurrence.cc), and its gradient.
#pragma once

#include "framework/base/host_device.h"
#include "framework/kernels/math/elementwise_math.h"

namespace zg {

// The gates of an LSTM behind their functions.
struct LstmGates {
  ZG_HOST_DEVICE ZG_INLINE static LstmGates Of(float i, float f, float g, float o) {
    return {elementwise::Sigmoid(i), elementwise::Sigmoid(f), elementwise::Tanh(g),
            elementwise::Sigmoid(o)};
  }
  ZG_HOST_DEVICE ZG_INLINE float Cell(float before) const { return f * before + i * g; }
  ZG_HOST_DEVICE ZG_INLINE float State(float cell) const { return o * elementwise::Tanh(cell); }

  float i, f, g, o;
};

struct LstmGradient {
  // From dh of the element's state, and dc of its cell besides.
  ZG_HOST_DEVICE ZG_INLINE static LstmGradient Of(const LstmGates& gates, float cell_before,
                                                  float cell, float dh, float dc) {
    const float tanh = elementwise::Tanh(cell);
    const float all_dc = dc + dh * gates.o * (1.0f - tanh * tanh);
    return {all_dc * gates.g * gates.i * (1.0f - gates.i),
            all_dc * cell_before * gates.f * (1.0f - gates.f),
            all_dc * gates.i * (1.0f - gates.g * gates.g), dh * tanh * gates.o * (1.0f - gates.o),
            all_dc * gates.f};
  }

  float i, f, g, o;  // of the sums before the functions
  float cell_before;
};

struct GruGates {
  // p_ is the product's part of a gate.
  ZG_HOST_DEVICE ZG_INLINE static GruGates Of(float x_r, float x_z, float x_n, float p_r, float p_z,
                                              float p_n) {
    const float r = elementwise::Sigmoid(x_r + p_r);
    return {r, elementwise::Sigmoid(x_z + p_z), elementwise::Tanh(x_n + r * p_n), p_n};
  }
  ZG_HOST_DEVICE ZG_INLINE float State(float before) const { return n + z * (before - n); }

  float r, z, n;
  float p_n;
};

struct GruGradient {
  ZG_HOST_DEVICE ZG_INLINE static GruGradient Of(const GruGates& gates, float before, float dh) {
    const float dn = dh * (1.0f - gates.z) * (1.0f - gates.n * gates.n);
    return {dn * gates.p_n * gates.r * (1.0f - gates.r),
            dh * (before - gates.n) * gates.z * (1.0f - gates.z), dn, dn * gates.r, dh * gates.z};
  }

  float r, z, n;  // of the sums before the functions
  float p_n;
  float before;  // of the state before the element, but for its product
};

struct RnnUnit {
  ZG_HOST_DEVICE ZG_INLINE float State(float sum) const {
    return relu ? elementwise::Relu(sum) : elementwise::Tanh(sum);
  }
  ZG_HOST_DEVICE ZG_INLINE float Gradient(float state, float dh) const {
    return relu ? elementwise::ReluGrad(dh, state) : dh * (1.0f - state * state);
  }

  bool relu;
};

}  // namespace zg
