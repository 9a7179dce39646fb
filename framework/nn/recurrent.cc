#include "framework/nn/recurrent.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "framework/nn/decoding.h"
#include "framework/nn/functions.h"
#include "framework/nn/shapes.h"

namespace zg::nn {

namespace {

Initializer UniformOf(int64_t hidden) {
  return Initializer::Uniform(1.0 / std::sqrt(static_cast<double>(hidden)));
}

}  // namespace

RecurrentParameters::RecurrentParameters(const Module* module, const std::string& suffix,
                                         int64_t in, int64_t hidden, int64_t gates)
    : weight_ih(module, "weight_ih" + suffix, {gates * hidden, in}, UniformOf(hidden)),
      weight_hh(module, "weight_hh" + suffix, {gates * hidden, hidden}, UniformOf(hidden)),
      bias_ih(module, "bias_ih" + suffix, {gates * hidden}, UniformOf(hidden)),
      bias_hh(module, "bias_hh" + suffix, {gates * hidden}, UniformOf(hidden)) {}

Recurrent::Recurrent(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
                     const RecurrentOptions& options, std::unique_ptr<const Recurrence> recurrence)
    : Module(parent, name), options_(options), recurrence_(std::move(recurrence)) {
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string suffix = fmt::format("_l{}", i);
    layers_.emplace_back(this, suffix, in, hidden, recurrence_->gates());
    if (options.bidirectional) {
      layers_.emplace_back(this, suffix + "_reverse", in, hidden, recurrence_->gates());
    }
    in = options.bidirectional ? 2 * hidden : hidden;
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
  RecurrentState last = state == nullptr ? RecurrentState() : *state;
  last.h.resize(layers_.size());
  last.c.resize(layers_.size());
  const size_t num_directions = options_.bidirectional ? 2 : 1;
  for (size_t i = 0; i < layers_.size(); i += num_directions) {
    if (i > 0) x = dropout(x, options_.dropout);
    std::vector<Var> results;
    for (size_t k = i; k < i + num_directions; ++k) {
      results.push_back(Run(layers_[k], x, /*from_end=*/k > i, &last.h[k], &last.c[k]));
      if (results.back().empty()) return results.back();
    }
    x = results.size() == 1 ? results[0] : concat(results, -1);
  }
  if (state != nullptr) *state = last;
  return x;
}

Var Recurrent::Run(const RecurrentParameters& layer, Var x, bool from_end, Var* h, Var* c) {
  const Var weight_ih = layer.weight_ih;
  const Var weight_hh = layer.weight_hh;
  const Var bias_ih = layer.bias_ih;
  const Var bias_hh = layer.bias_hh;
  const Var all_from_x = linear(x, weight_ih, bias_ih);  // (B, T, gates x H), in one product
  const int64_t length = x.dim(1);
  std::vector<Var> results(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = from_end ? length - 1 - i : i;
    const Var from_h = h->empty() ? bias_hh : linear(*h, weight_hh, bias_hh);
    *h = recurrence_->Step(select(all_from_x, 1, t), from_h, *h, c);
    if (h->empty()) return Var();
    results[static_cast<size_t>(t)] = *h;
  }
  return stack(results, 1);
}

// c' = f c + i g, h' = o tanh(c').
Var LstmRecurrence::Step(Var from_x, Var from_h, Var, Var* c) const {
  const std::vector<Var> gates = chunk(from_x + from_h, 4, -1);
  if (gates.size() != 4) return Var();
  const Var added = sigmoid(gates[0]) * tanh(gates[2]);
  *c = c->empty() ? added : sigmoid(gates[1]) * *c + added;
  return sigmoid(gates[3]) * tanh(*c);
}

// n = tanh(n from x + r (n from h)), h' = (1 - z) n + z h.
Var GruRecurrence::Step(Var from_x, Var from_h, Var h, Var*) const {
  const std::vector<Var> of_x = chunk(from_x, 3, -1);
  const std::vector<Var> of_h = chunk(from_h, 3, -1);
  if (of_x.size() != 3 || of_h.size() != 3) return Var();
  const Var r = sigmoid(of_x[0] + of_h[0]);
  const Var z = sigmoid(of_x[1] + of_h[1]);
  const Var n = tanh(of_x[2] + r * of_h[2]);
  return h.empty() ? n - z * n : n + z * (h - n);
}

Var RnnRecurrence::Step(Var from_x, Var from_h, Var, Var*) const {
  return uses_relu_ ? relu(from_x + from_h) : tanh(from_x + from_h);
}

Var RecurrentCell::Run(const Recurrence& recurrence, Var x, Var h, Var* c) {
  const Scope scope(*this);
  const int64_t in = parameters_.weight_ih.shape().dim(1);
  if (x.shape().num_dims() != 2 || x.dim(1) != in) {
    return fail(InvalidArgument("got x {}, expected (B, {})", x.shape().ToString(), in));
  }
  const Var weight_ih = parameters_.weight_ih;
  const Var weight_hh = parameters_.weight_hh;
  const Var bias_ih = parameters_.bias_ih;
  const Var bias_hh = parameters_.bias_hh;
  const Var from_h = h.empty() ? bias_hh : linear(h, weight_hh, bias_hh);
  return recurrence.Step(linear(x, weight_ih, bias_ih), from_h, h, c);
}

}  // namespace zg::nn
