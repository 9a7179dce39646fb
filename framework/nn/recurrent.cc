#include "framework/nn/recurrent.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "framework/nn/conditions.h"
#include "framework/nn/decoding.h"
#include "framework/nn/functions.h"
#include "framework/nn/indexing.h"
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
                     int64_t gates, const RecurrentOptions& options)
    : Module(parent, name), options_(options) {
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string suffix = fmt::format("_l{}", i);
    layers_.emplace_back(this, suffix, in, hidden, gates);
    if (options.bidirectional) {
      layers_.emplace_back(this, suffix + "_reverse", in, hidden, gates);
    }
    in = options.bidirectional ? 2 * hidden : hidden;
  }
}

struct Recurrent::Ends {
  Ends(Var lengths, int64_t length) {
    const Var own = unsqueeze(unsqueeze(lengths, -1), -1);
    const Var t = unsqueeze(arange(length), -1);
    is_before = less(t, own);
    backwards = t + to(is_before, DType::kI64) * (own - 1.0 - 2.0 * t);
    last = own - 1.0;
  }

  // The elements of x (B, T, C) at the indices (B, ..., 1).
  static Var At(Var x, Var index) { return gather(x, 1, expand(index, {-1, -1, x.dim(2)})); }

  Var is_before;  // bool (B, T, 1): whether the element is one of the sequence
  Var backwards;  // i64 (B, T, 1): the sequence from its end on, and what is behind it
  Var last;       // i64 (B, 1, 1)
};

Var Recurrent::operator()(Var x, RecurrentState* state, Var lengths) {
  const Scope scope(*this);
  if (x.shape().num_dims() != 3) {
    return fail(InvalidArgument("got x {}, expected (B, T, in)", x.shape().ToString()));
  }
  if (layers_.empty()) {
    return fail(InvalidArgument("got {} layers, expected at least 1", options_.layers));
  }
  if (Decoding::Current() != nullptr && (options_.bidirectional || !lengths.empty())) {
    return fail(InvalidArgument(
        "while decoding, got {}, expected sequences of one length in one direction",
        options_.bidirectional ? "a layer in both directions" : "sequences of several lengths"));
  }
  std::optional<Ends> ends;
  if (!lengths.empty()) {
    if (lengths.dtype() != DType::kI64 || lengths.shape() != Shape{x.dim(0)}) {
      return fail(InvalidArgument("got lengths {}{}, expected i64[{}]", DTypeName(lengths.dtype()),
                                  lengths.shape().ToString(), x.dim(0)));
    }
    ends.emplace(lengths, x.dim(1));
  }
  // While decoding, layers keep their states themselves, unless they are given some.
  Decoding* const decoding = state == nullptr ? Decoding::Current() : nullptr;
  RecurrentState last = state == nullptr ? RecurrentState() : *state;
  last.h.resize(layers_.size());
  last.c.resize(layers_.size());
  if (decoding != nullptr) {
    ForEachState(&last, [&](Var* own, const Dims& shape, const std::string& name) {
      *own = decoding->State(x, shape, name);
    });
  }
  const size_t num_directions = options_.bidirectional ? 2 : 1;
  for (size_t i = 0; i < layers_.size(); i += num_directions) {
    if (i > 0) x = dropout(x, options_.dropout);
    std::vector<Var> results;
    for (size_t k = i; k < i + num_directions; ++k) {
      results.push_back(Run(layers_[k], x, ends ? &*ends : nullptr, /*from_end=*/k > i,
                            /*keeps=*/state != nullptr || decoding != nullptr, &last.h[k],
                            &last.c[k]));
      if (results.back().empty()) return results.back();
    }
    x = results.size() == 1 ? results[0] : concat(results, -1);
  }
  if (state != nullptr) *state = last;
  if (decoding != nullptr) {
    ForEachState(
        &last, [&](Var* own, const Dims&, const std::string& name) { decoding->Keep(*own, name); });
  }
  return x;
}

template <typename F>
void Recurrent::ForEachState(RecurrentState* states, const F& f) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Dims shape = {Var(layers_[i].weight_hh).dim(1)};
    f(&states->h[i], shape, fmt::format("h{}", i));
    if (has_cells()) f(&states->c[i], shape, fmt::format("c{}", i));
  }
}

Var Recurrent::Run(const RecurrentParameters& layer, Var x, const Ends* ends, bool from_end,
                   bool keeps, Var* h, Var* c) {
  const bool turns = from_end && ends != nullptr;
  if (turns) x = Ends::At(x, ends->backwards);
  const Var weight_ih = layer.weight_ih;
  const Var weight_hh = layer.weight_hh;
  const Var bias_ih = layer.bias_ih;
  const Var bias_hh = layer.bias_hh;
  std::vector<Var> inputs = {linear(x, weight_ih, bias_ih), weight_hh, bias_hh};
  if (has_cells() && h->empty() != c->empty()) {
    return fail(
        InvalidArgument("got a state h without c, or c without h, expected both or neither"));
  }
  if (!h->empty()) inputs.push_back(*h);
  if (!c->empty()) inputs.push_back(*c);
  const std::vector<Var> outputs = RunSequence(inputs, from_end && !turns);
  if (outputs.empty()) return Var();
  if (keeps) {
    const auto last = [&](Var states) {
      if (ends != nullptr) return squeeze(Ends::At(states, ends->last), 1);
      return select(states, 1, from_end ? 0 : x.dim(1) - 1);
    };
    *h = last(outputs[0]);
    if (has_cells()) *c = last(outputs[1]);
  }
  if (ends == nullptr) return outputs[0];
  const Var in_order = turns ? Ends::At(outputs[0], ends->backwards) : outputs[0];
  return where(ends->is_before, in_order, 0.0);
}

std::vector<Var> LSTM::RunSequence(const std::vector<Var>& inputs, bool from_end) const {
  return append_all("lstm", inputs, {{"from_end", from_end}});
}

std::vector<Var> GRU::RunSequence(const std::vector<Var>& inputs, bool from_end) const {
  return append_all("gru", inputs, {{"from_end", from_end}});
}

std::vector<Var> RNN::RunSequence(const std::vector<Var>& inputs, bool from_end) const {
  return append_all("rnn", inputs, {{"from_end", from_end}, {"uses_relu", uses_relu_}});
}

RecurrentCell::Gates RecurrentCell::GatesOf(Var x, Var h) {
  const Scope scope(*this);
  const int64_t in = parameters_.weight_ih.shape().dim(1);
  if (x.shape().num_dims() != 2 || x.dim(1) != in) {
    const Var failed =
        fail(InvalidArgument("got x {}, expected (B, {})", x.shape().ToString(), in));
    return {failed, failed};
  }
  if (!h.empty() && !CheckState("h", x, h)) return {Var(), Var()};
  const Var weight_ih = parameters_.weight_ih;
  const Var weight_hh = parameters_.weight_hh;
  const Var bias_ih = parameters_.bias_ih;
  const Var bias_hh = parameters_.bias_hh;
  return {linear(x, weight_ih, bias_ih), h.empty() ? bias_hh : linear(h, weight_hh, bias_hh)};
}

bool RecurrentCell::CheckState(const char* name, Var x, Var state) {
  const Shape expected = {x.dim(0), parameters_.weight_hh.shape().dim(1)};
  if (state.shape() == expected) return true;
  fail(InvalidArgument("got {} {} beside x {}, expected {}", name, state.shape().ToString(),
                       x.shape().ToString(), expected.ToString()));
  return false;
}

// c' = f c + i g, h' = o tanh(c').
Var LSTMCell::operator()(Var x, Var h, Var* c) {
  const Gates gates = GatesOf(x, h);
  const Scope scope(*this);
  if (gates.of_x.empty() || (!c->empty() && !CheckState("c", x, *c))) return Var();
  const std::vector<Var> each = chunk(gates.of_x + gates.of_h, 4, -1);
  if (each.size() != 4) return Var();
  const Var added = sigmoid(each[0]) * tanh(each[2]);
  *c = c->empty() ? added : sigmoid(each[1]) * *c + added;
  return sigmoid(each[3]) * tanh(*c);
}

// n = tanh(n from x + r (n from h)), h' = (1 - z) n + z h.
Var GRUCell::operator()(Var x, Var h) {
  const Gates gates = GatesOf(x, h);
  const Scope scope(*this);
  const std::vector<Var> of_x = chunk(gates.of_x, 3, -1);
  const std::vector<Var> of_h = chunk(gates.of_h, 3, -1);
  if (of_x.size() != 3 || of_h.size() != 3) return Var();
  const Var r = sigmoid(of_x[0] + of_h[0]);
  const Var z = sigmoid(of_x[1] + of_h[1]);
  const Var n = tanh(of_x[2] + r * of_h[2]);
  return h.empty() ? n - z * n : n + z * (h - n);
}

Var RNNCell::operator()(Var x, Var h) {
  const Gates gates = GatesOf(x, h);
  const Scope scope(*this);
  return uses_relu_ ? relu(gates.of_x + gates.of_h) : tanh(gates.of_x + gates.of_h);
}

}  // namespace zg::nn
