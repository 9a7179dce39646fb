#include "framework/nn/recurrent.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/nn/decoding.h"
#include "framework/nn/functions.h"
#include "framework/nn/shapes.h"

namespace zg::nn {

namespace {

std::string NameOf(const char* kind, int64_t layer) { return fmt::format("{}_l{}", kind, layer); }

Initializer UniformOf(int64_t hidden) {
  return Initializer::Uniform(1.0 / std::sqrt(static_cast<double>(hidden)));
}

}  // namespace

Recurrent::Layer::Layer(const Module* module, int64_t index, int64_t in, int64_t hidden,
                        int64_t rows)
    : weight_ih(module, NameOf("weight_ih", index), {rows, in}, UniformOf(hidden)),
      weight_hh(module, NameOf("weight_hh", index), {rows, hidden}, UniformOf(hidden)),
      bias_ih(module, NameOf("bias_ih", index), {rows}, UniformOf(hidden)),
      bias_hh(module, NameOf("bias_hh", index), {rows}, UniformOf(hidden)) {}

Recurrent::Recurrent(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
                     int64_t layers, int64_t gates)
    : Module(parent, name) {
  for (int64_t i = 0; i < layers; ++i) {
    layers_.emplace_back(this, i, i == 0 ? in : hidden, hidden, gates * hidden);
  }
}

Var Recurrent::operator()(Var x, RecurrentState* state) {
  const Scope scope(*this);
  if (x.shape().num_dims() != 3) {
    return fail(InvalidArgument("got x {}, expected (B, T, in)", x.shape().ToString()));
  }
  if (Decoding::Current() != nullptr) {
    return fail(InvalidArgument(
        "recurrent layers keep no state from one run of a program to the next, which decoding needs; "
        "compute whole texts instead"));
  }
  const auto given = [](const std::vector<Var>& states, size_t layer) {
    return layer < states.size() ? states[layer] : Var();
  };
  RecurrentState last;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Var weight_ih = layers_[i].weight_ih;
    const Var weight_hh = layers_[i].weight_hh;
    const Var bias_ih = layers_[i].bias_ih;
    const Var bias_hh = layers_[i].bias_hh;
    const Var all_from_x = linear(x, weight_ih, bias_ih);  // (B, T, gates x H), in one product
    Var h = state == nullptr ? Var() : given(state->h, i);
    Var c = state == nullptr ? Var() : given(state->c, i);
    std::vector<Var> outputs;
    for (int64_t t = 0; t < x.dim(1); ++t) {
      const Var from_h = h.empty() ? bias_hh : linear(h, weight_hh, bias_hh);
      h = Step(select(all_from_x, 1, t), from_h, h, &c);
      if (h.empty()) return h;  // the graph has the error
      outputs.push_back(h);
    }
    last.h.push_back(h);
    last.c.push_back(c);
    x = stack(outputs, 1);
  }
  if (state != nullptr) *state = last;
  return x;
}

// c' = f c + i g, h' = o tanh(c').
Var LSTM::Step(Var from_x, Var from_h, Var, Var* c) {
  const std::vector<Var> gates = chunk(from_x + from_h, 4, -1);
  if (gates.size() != 4) return Var();
  const Var added = sigmoid(gates[0]) * tanh(gates[2]);
  *c = c->empty() ? added : sigmoid(gates[1]) * *c + added;
  return sigmoid(gates[3]) * tanh(*c);
}

// n = tanh(n from x + r (n from h)), h' = (1 - z) n + z h.
Var GRU::Step(Var from_x, Var from_h, Var h, Var*) {
  const std::vector<Var> of_x = chunk(from_x, 3, -1);
  const std::vector<Var> of_h = chunk(from_h, 3, -1);
  if (of_x.size() != 3 || of_h.size() != 3) return Var();
  const Var r = sigmoid(of_x[0] + of_h[0]);
  const Var z = sigmoid(of_x[1] + of_h[1]);
  const Var n = tanh(of_x[2] + r * of_h[2]);
  return h.empty() ? n - z * n : n + z * (h - n);
}

}  // namespace zg::nn
