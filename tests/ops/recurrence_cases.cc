#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Values = std::vector<double>;

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// A sequence (B, T, gates x H) or a state (B, H), by sample, element, gate and channel.
struct Sequence {
  explicit Sequence(const ReferenceTensor& tensor, int64_t hidden)
      : Sequence(tensor.shape, hidden, tensor.values) {}
  Sequence(const Shape& shape, int64_t hidden, Values values = {})
      : steps(shape.num_dims() == 3 ? shape.dim(1) : 1),
        gates(shape.dim(-1) / hidden),
        hidden(hidden),
        values(std::move(values)) {
    this->values.resize(shape.num_elements());
  }
  double& At(int64_t sample, int64_t t, int64_t gate, int64_t channel) {
    return values[((sample * steps + t) * gates + gate) * hidden + channel];
  }

  int64_t steps;
  int64_t gates;
  int64_t hidden;
  Values values;
};

// The sizes of a call, whose operand 1 is weight (G H, H).
struct Sizes {
  explicit Sizes(const ReferenceCall& call)
      : samples(call.inputs[0].shape.dim(0)),
        steps(call.inputs[0].shape.dim(1)),
        hidden(call.inputs[1].shape.dim(1)),
        gates(call.inputs[1].shape.dim(0) / hidden),
        from_end(call.attributes.Bool("from_end")) {}

  int64_t StepAt(int64_t i) const { return from_end ? steps - 1 - i : i; }
  Sequence Make(int64_t num_gates) const { return {{samples, steps, num_gates * hidden}, hidden}; }
  Sequence MakeState() const { return {{samples, hidden}, hidden}; }

  int64_t samples, steps, hidden, gates;
  bool from_end;
};

// A state before the first element: operand `input`, or zeros if there is none.
Sequence StateOf(const ReferenceCall& call, size_t input) {
  const Sizes sizes(call);
  return call.inputs.size() > input ? Sequence(call.inputs[input], sizes.hidden)
                                    : sizes.MakeState();
}

// Calls channel(sample, t, j, x, p) for all elements in order, with the sums x of gates and the
// products p = weight h + bias; it returns the state that becomes h.
template <typename Channel>
void ForElements(const ReferenceCall& call, const Channel& channel) {
  const Sizes sizes(call);
  Sequence x(call.inputs[0], sizes.hidden), h = StateOf(call, 3);
  for (int64_t i = 0; i < sizes.steps; ++i) {
    for (int64_t n = 0; n < sizes.samples; ++n) {
      Values next;
      for (int64_t j = 0; j < sizes.hidden; ++j) {
        Values of_x, products;
        for (int64_t gate = 0; gate < sizes.gates; ++gate) {
          const int64_t row = gate * sizes.hidden + j;
          double product = call.inputs[2].values[row];
          for (int64_t k = 0; k < sizes.hidden; ++k) {
            product += call.inputs[1].values[row * sizes.hidden + k] * h.At(n, 0, 0, k);
          }
          of_x.push_back(x.At(n, sizes.StepAt(i), gate, j));
          products.push_back(product);
        }
        next.push_back(channel(n, sizes.StepAt(i), j, of_x, products, h.At(n, 0, 0, j)));
      }
      for (int64_t j = 0; j < sizes.hidden; ++j) h.At(n, 0, 0, j) = next[j];
    }
  }
}

ReferenceOutputs Lstm(const ReferenceCall& call) {
  const Sizes sizes(call);
  Sequence states = sizes.Make(1), cells = sizes.Make(1), gates = sizes.Make(4);
  Sequence cell = StateOf(call, 4);
  ForElements(call, [&](int64_t n, int64_t t, int64_t j, const Values& x, const Values& p, double) {
    const Values own = {Sigmoid(x[0] + p[0]), Sigmoid(x[1] + p[1]), std::tanh(x[2] + p[2]),
                        Sigmoid(x[3] + p[3])};
    for (int k = 0; k < 4; ++k) gates.At(n, t, k, j) = own[k];
    double& c = cell.At(n, 0, 0, j);
    c = own[1] * c + own[0] * own[2];
    cells.At(n, t, 0, j) = c;
    return states.At(n, t, 0, j) = own[3] * std::tanh(c);
  });
  return {states.values, cells.values, gates.values};
}

ReferenceOutputs Gru(const ReferenceCall& call) {
  const Sizes sizes(call);
  Sequence states = sizes.Make(1), gates = sizes.Make(4);
  ForElements(call,
              [&](int64_t n, int64_t t, int64_t j, const Values& x, const Values& p, double h) {
                const double r = Sigmoid(x[0] + p[0]), z = Sigmoid(x[1] + p[1]);
                const double candidate = std::tanh(x[2] + r * p[2]);
                const Values own = {r, z, candidate, p[2]};
                for (int k = 0; k < 4; ++k) gates.At(n, t, k, j) = own[k];
                return states.At(n, t, 0, j) = (1.0 - z) * candidate + z * h;
              });
  return {states.values, gates.values};
}

ReferenceOutputs Rnn(const ReferenceCall& call) {
  const bool relu = call.attributes.Bool("uses_relu");
  Sequence states = Sizes(call).Make(1);
  ForElements(call, [&](int64_t n, int64_t t, int64_t j, const Values& x, const Values& p, double) {
    const double sum = x[0] + p[0];
    return states.At(n, t, 0, j) = relu ? std::max(sum, 0.0) : std::tanh(sum);
  });
  return {states.values};
}

// Calls channel(sample, t, before, j, dh, dp, &direct) for all elements from the last one on. It
// sets the gradients dp of the products, and of the state before the element what does not come
// through these. `before` is the element before t; -1: there is none. Returns the gradient of the
// state before the first element.
template <typename Channel>
Values ForElementsBackwards(const ReferenceCall& call, const Channel& channel) {
  const Sizes sizes(call);
  Sequence dh(call.inputs[0], sizes.hidden), carried = sizes.MakeState();
  for (int64_t i = sizes.steps - 1; i >= 0; --i) {
    const int64_t t = sizes.StepAt(i);
    for (int64_t n = 0; n < sizes.samples; ++n) {
      Values next(sizes.hidden, 0.0);
      for (int64_t j = 0; j < sizes.hidden; ++j) {
        Values dp(sizes.gates);
        channel(n, t, i == 0 ? -1 : sizes.StepAt(i - 1), j,
                dh.At(n, t, 0, j) + carried.At(n, 0, 0, j), &dp, &next[j]);
        for (int64_t gate = 0; gate < sizes.gates; ++gate) {
          const double* row =
              call.inputs[1].values.data() + (gate * sizes.hidden + j) * sizes.hidden;
          for (int64_t k = 0; k < sizes.hidden; ++k) next[k] += dp[gate] * row[k];
        }
      }
      for (int64_t j = 0; j < sizes.hidden; ++j) carried.At(n, 0, 0, j) = next[j];
    }
  }
  return carried.values;
}

ReferenceOutputs LstmGrad(const ReferenceCall& call) {
  const Sizes sizes(call);
  const bool has_states = call.attributes.Bool("has_states");
  Sequence gates(call.inputs[2], sizes.hidden), cells(call.inputs[3], sizes.hidden);
  Sequence dc = sizes.Make(1), first = sizes.MakeState();
  if (call.inputs.size() > (has_states ? 5 : 4)) dc = Sequence(call.inputs[4], sizes.hidden);
  if (has_states) first = Sequence(call.inputs.back(), sizes.hidden);
  Sequence dx = sizes.Make(4), dcell = sizes.MakeState();
  const Values dstate = ForElementsBackwards(
      call, [&](int64_t n, int64_t t, int64_t before, int64_t j, double dh, Values* dp, double*) {
        const double i = gates.At(n, t, 0, j), f = gates.At(n, t, 1, j), g = gates.At(n, t, 2, j),
                     o = gates.At(n, t, 3, j);
        const double tanh = std::tanh(cells.At(n, t, 0, j));
        const double c = before < 0 ? first.At(n, 0, 0, j) : cells.At(n, before, 0, j);
        const double all = dcell.At(n, 0, 0, j) + dc.At(n, t, 0, j) + dh * o * (1 - tanh * tanh);
        *dp = {all * g * i * (1 - i), all * c * f * (1 - f), all * i * (1 - g * g),
               dh * tanh * o * (1 - o)};
        for (int k = 0; k < 4; ++k) dx.At(n, t, k, j) = (*dp)[k];
        dcell.At(n, 0, 0, j) = all * f;
      });
  return {dx.values, dstate, dcell.values};
}

ReferenceOutputs GruGrad(const ReferenceCall& call) {
  const Sizes sizes(call);
  Sequence gates(call.inputs[2], sizes.hidden), states(call.inputs[3], sizes.hidden);
  Sequence first = StateOf(call, 4), dx = sizes.Make(3), dproducts = sizes.Make(3);
  const Values dstate = ForElementsBackwards(
      call,
      [&](int64_t n, int64_t t, int64_t before, int64_t j, double dh, Values* dp, double* direct) {
        const double r = gates.At(n, t, 0, j), z = gates.At(n, t, 1, j), own = gates.At(n, t, 2, j),
                     p = gates.At(n, t, 3, j);
        const double h = before < 0 ? first.At(n, 0, 0, j) : states.At(n, before, 0, j);
        const double dn = dh * (1 - z) * (1 - own * own);
        *dp = {dn * p * r * (1 - r), dh * (h - own) * z * (1 - z), dn * r};
        for (int k = 0; k < 3; ++k) dproducts.At(n, t, k, j) = dx.At(n, t, k, j) = (*dp)[k];
        dx.At(n, t, 2, j) = dn;
        *direct += dh * z;
      });
  return {dx.values, dproducts.values, dstate};
}

ReferenceOutputs RnnGrad(const ReferenceCall& call) {
  const bool relu = call.attributes.Bool("uses_relu");
  Sequence states(call.inputs[2], Sizes(call).hidden), dx = Sizes(call).Make(1);
  const Values dstate = ForElementsBackwards(
      call, [&](int64_t n, int64_t t, int64_t, int64_t j, double dh, Values* dp, double*) {
        const double h = states.At(n, t, 0, j);
        dx.At(n, t, 0, j) = (*dp)[0] = relu ? (h > 0.0 ? dh : 0.0) : dh * (1 - h * h);
      });
  return {dx.values, dstate};
}

struct LayerSizes {
  int64_t samples, steps, hidden;
  bool has_states = true;
  bool from_end = false;

  InputSpec Rows(int64_t gates, double low = -1.0) const {
    return F32({samples, steps, gates * hidden}, low);
  }
  InputSpec State() const { return F32({samples, hidden}); }
  InputSpec Weight(int64_t gates) const {
    const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
    return F32({gates * hidden, hidden}, -bound, bound);
  }
};

// A layer and its gradient.
void AddCases(std::vector<OpCase>* cases, const std::string& label, const LayerSizes& sizes,
              const char* layer, int64_t gates, int num_states, std::vector<InputSpec> saved,
              ir::Attributes attributes = {}) {
  attributes.Set("from_end", sizes.from_end);
  OpCase forward;
  forward.op = layer;
  forward.label = label;
  forward.inputs = {sizes.Rows(gates), sizes.Weight(gates), F32({gates * sizes.hidden})};
  for (int i = 0; sizes.has_states && i < num_states; ++i) forward.inputs.push_back(sizes.State());
  forward.attributes = attributes;
  forward.rounds_terms = true;
  forward.reference = gates == 4 ? Lstm : gates == 3 ? Gru : Rnn;
  forward.check_gradient = sizes.samples * sizes.steps * sizes.hidden < 100;
  OpCase backward = forward;
  backward.op += "_grad";
  backward.inputs = {sizes.Rows(1), sizes.Weight(gates)};
  backward.inputs.insert(backward.inputs.end(), saved.begin(), saved.end());
  backward.reference = gates == 4 ? LstmGrad : gates == 3 ? GruGrad : RnnGrad;
  cases->push_back(forward);
  cases->push_back(backward);
}

void AddLstm(std::vector<OpCase>* cases, const std::string& label, const LayerSizes& sizes,
             bool uses_cells = false) {
  std::vector<InputSpec> saved = {sizes.Rows(4, 0.0), sizes.Rows(1)};
  if (uses_cells) saved.push_back(sizes.Rows(1));
  if (sizes.has_states) saved.push_back(sizes.State());
  AddCases(cases, label, sizes, "lstm", 4, 2, saved);
  cases->back().attributes.Set("has_states", sizes.has_states);
}

void AddGru(std::vector<OpCase>* cases, const std::string& label, const LayerSizes& sizes) {
  std::vector<InputSpec> saved = {sizes.Rows(4, 0.0), sizes.Rows(1)};
  if (sizes.has_states) saved.push_back(sizes.State());
  AddCases(cases, label, sizes, "gru", 3, 1, saved);
}

void AddRnn(std::vector<OpCase>* cases, const std::string& label, const LayerSizes& sizes,
            bool relu = false) {
  AddCases(cases, label, sizes, "rnn", 1, 1, {sizes.Rows(1)}, {{"uses_relu", relu}});
}

}  // namespace

FamilyCases RecurrenceCases() {
  FamilyCases family;
  std::vector<OpCase>* const cases = &family.cases;
  AddLstm(cases, "splits", {6, 2, 3});
  AddLstm(cases, "splits, with cells", {6, 2, 3}, /*uses_cells=*/true);
  AddLstm(cases, "splits, from zeros", {6, 2, 3, /*has_states=*/false});
  AddLstm(cases, "splits, from zeros, with cells", {6, 2, 3, /*has_states=*/false}, true);
  AddLstm(cases, "from zeros", {2, 3, 4, /*has_states=*/false}, /*uses_cells=*/true);
  AddLstm(cases, "from the end", {2, 3, 4, true, /*from_end=*/true}, /*uses_cells=*/true);
  AddLstm(cases, "one element", {3, 1, 5, /*has_states=*/false});
  AddLstm(cases, "many channels", {5, 4, 35});
  AddGru(cases, "splits", {6, 2, 3});
  AddGru(cases, "splits, from zeros", {6, 2, 3, /*has_states=*/false});
  AddGru(cases, "from zeros", {2, 3, 4, /*has_states=*/false});
  AddGru(cases, "from the end", {2, 3, 4, true, /*from_end=*/true});
  AddGru(cases, "many channels", {5, 4, 35});
  AddRnn(cases, "splits", {6, 2, 3});
  AddRnn(cases, "from zeros, relu", {6, 3, 4, /*has_states=*/false}, /*relu=*/true);
  (cases->end() - 2)->check_gradient = false;  // its differences are taken around 0
  AddRnn(cases, "above 0, relu", {2, 3, 4}, /*relu=*/true);
  (cases->end() - 2)->inputs[0].low = 3.0;
  (cases->end() - 2)->inputs[0].high = 4.0;
  AddRnn(cases, "from the end", {2, 3, 4, true, /*from_end=*/true});
  AddRnn(cases, "many channels", {5, 4, 35});

  family.rejections = {
      {"lstm",
       {F32({2, 10}), F32({10, 2}), F32({10})},
       {},
       "lstm: x is not (samples, elements, gates x channels): x f32[2,10], weight f32[10,2], bias "
       "f32[10]"},
      {"lstm",
       {F32({2, 5, 10}), F32({10, 2}), F32({10})},
       {},
       "lstm: x is not (samples, elements, gates x channels): x f32[2,5,10], weight f32[10,2], bias "
       "f32[10]"},
      {"lstm",
       {F32({2, 5, 0}), F32({0, 0}), F32({0})},
       {},
       "lstm: x is not (samples, elements, gates x channels): x f32[2,5,0], weight f32[0,0], bias "
       "f32[0]"},
      {"lstm",
       {F32({2, 5, 12}), F32({12, 4}), F32({12})},
       {},
       "lstm: weight is not (gates x channels, channels): x f32[2,5,12], weight f32[12,4], bias "
       "f32[12]"},
      {"gru",
       {F32({2, 5, 12}), F32({12, 4}), F32({4})},
       {},
       "gru: bias does not fit the rows of weight: x f32[2,5,12], weight f32[12,4], bias f32[4]"},
      {"lstm",
       {F32({2, 5, 12}), F32({12, 3}), F32({12}), F32({2, 3})},
       {},
       "lstm: c is missing: x f32[2,5,12], weight f32[12,3], bias f32[12], h f32[2,3]"},
      {"rnn",
       {F32({2, 5, 4}), F32({4, 4}), F32({4}), F32({3, 4})},
       {},
       "rnn: h is not (samples, channels): x f32[2,5,4], weight f32[4,4], bias f32[4], h f32[3,4]"},
      {"lstm_grad",
       {F32({2, 5, 3}), F32({12, 3}), F32({2, 5, 12}), F32({2, 5, 3})},
       {{"has_states", true}},
       "lstm_grad: got 4 operands, expected 5"},
      {"lstm_grad",
       {F32({2, 5, 3}), F32({12, 3}), F32({2, 5, 12}), F32({2, 5, 3}), F32({2, 3})},
       {},
       "lstm_grad: dc does not fit dh: dh f32[2,5,3], weight f32[12,3], gates f32[2,5,12], cells "
       "f32[2,5,3], dc f32[2,3]"},
      {"gru_grad",
       {F32({2, 5, 3}), F32({12, 3}), F32({2, 5, 12}), F32({2, 5, 3})},
       {},
       "gru_grad: weight is not (gates x channels, channels): dh f32[2,5,3], weight f32[12,3], gates "
       "f32[2,5,12], states f32[2,5,3]"},
      {"rnn_grad",
       {F32({2, 5, 0}), F32({0, 0}), F32({2, 5, 0})},
       {},
       "rnn_grad: dh is not (samples, elements, channels): dh f32[2,5,0], weight f32[0,0], states "
       "f32[2,5,0]"},
      {"rnn_grad",
       {F32({2, 3}), F32({3, 3}), F32({2, 3})},
       {},
       "rnn_grad: dh is not (samples, elements, channels): dh f32[2,3], weight f32[3,3], states "
       "f32[2,3]"},
  };

  const auto sized = [](std::vector<OpCase> all) {
    for (OpCase& one : all) one.reference = nullptr;
    return all;
  };
  std::vector<OpCase> large, bench;
  for (const LayerSizes& sizes : {LayerSizes{40, 7, 130}, LayerSizes{3, 9, 300, false, true}}) {
    AddLstm(&large, "large", sizes, /*uses_cells=*/true);
    AddGru(&large, "large", sizes);
    AddRnn(&large, "large", sizes);
  }
  AddLstm(&bench, "characters", {32, 64, 256, /*has_states=*/false});
  AddGru(&bench, "characters", {32, 64, 256, /*has_states=*/false});
  family.large = sized(large);
  family.bench = sized(bench);
  return family;
}

}  // namespace zg::testing
