#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// One state of one channel of one sample after the other.
struct Scan {
  // The operands x, step, a, b, c begin at `first`.
  Scan(const ReferenceCall& call, size_t first)
      : call(call),
        first(first),
        samples(call.inputs[first].shape.dim(0)),
        steps(call.inputs[first].shape.dim(1)),
        channels(call.inputs[first].shape.dim(2)),
        states(call.inputs[first + 2].shape.dim(1)) {}

  size_t OfChannel(int64_t s, int64_t t, int64_t d) const { return (s * steps + t) * channels + d; }
  size_t OfState(int64_t s, int64_t t, int64_t n) const { return (s * steps + t) * states + n; }
  size_t Last(int64_t s, int64_t d, int64_t n) const { return (s * channels + d) * states + n; }
  double In(size_t operand, size_t at) const { return call.inputs[first + operand].values[at]; }
  double Decay(int64_t s, int64_t t, int64_t d, int64_t n) const {
    return std::exp(In(1, OfChannel(s, t, d)) * In(2, d * states + n));
  }
  double Product(int64_t s, int64_t t, int64_t d) const {
    return In(0, OfChannel(s, t, d)) * In(1, OfChannel(s, t, d));
  }
  // h before the first and after each step.
  std::vector<double> States(int64_t s, int64_t d, int64_t n) const {
    const bool continues = call.inputs.size() > first + 5;
    std::vector<double> h = {continues ? In(5, Last(s, d, n)) : 0.0};
    for (int64_t t = 0; t < steps; ++t) {
      h.push_back(Decay(s, t, d, n) * h.back() + Product(s, t, d) * In(3, OfState(s, t, n)));
    }
    return h;
  }
  template <typename Body>
  void ForEachState(const Body& body) const {
    for (int64_t s = 0; s < samples; ++s) {
      for (int64_t d = 0; d < channels; ++d) {
        for (int64_t n = 0; n < states; ++n) body(s, d, n);
      }
    }
  }

  const ReferenceCall& call;
  const size_t first;
  const int64_t samples, steps, channels, states;
};

ReferenceOutputs SelectiveScan(const ReferenceCall& call) {
  const Scan scan(call, 0);
  std::vector<double> y(call.inputs[0].values.size());
  std::vector<double> last(scan.samples * scan.channels * scan.states);
  scan.ForEachState([&](int64_t s, int64_t d, int64_t n) {
    const std::vector<double> h = scan.States(s, d, n);
    for (int64_t t = 0; t < scan.steps; ++t) {
      y[scan.OfChannel(s, t, d)] += h[t + 1] * scan.In(4, scan.OfState(s, t, n));
    }
    last[scan.Last(s, d, n)] = h.back();
  });
  return {y, last};
}

ReferenceOutputs SelectiveScanGrad(const ReferenceCall& call) {
  const Scan scan(call, 1);
  const std::vector<double>& dy = call.inputs[0].values;
  std::vector<double> dx(dy.size()), dstep(dy.size());
  std::vector<double> da(scan.samples * scan.channels * scan.states), dstate(da.size());
  std::vector<double> db(call.inputs[4].values.size()), dc(db.size());
  scan.ForEachState([&](int64_t s, int64_t d, int64_t n) {
    const std::vector<double> h = scan.States(s, d, n);
    double carried = 0.0;
    for (int64_t t = scan.steps - 1; t >= 0; --t) {
      const size_t at = scan.OfChannel(s, t, d), of_state = scan.OfState(s, t, n);
      const double decay = scan.Decay(s, t, d, n);
      const double dh = carried + dy[at] * scan.In(4, of_state);
      const double of_exponent = dh * h[t] * decay;
      dx[at] += scan.In(1, at) * dh * scan.In(3, of_state);
      dstep[at] += of_exponent * scan.In(2, d * scan.states + n) +
                   scan.In(0, at) * dh * scan.In(3, of_state);
      da[scan.Last(s, d, n)] += of_exponent * scan.In(1, at);
      db[of_state] += dh * scan.Product(s, t, d);
      dc[of_state] += dy[at] * h[t + 1];
      carried = decay * dh;
    }
    dstate[scan.Last(s, d, n)] = carried;
  });
  return {dx, dstep, da, db, dc, dstate};
}

// x, step, a, b, c of these sizes.
std::vector<InputSpec> Operands(int64_t samples, int64_t steps, int64_t channels, int64_t states) {
  const Shape x = {samples, steps, channels}, b = {samples, steps, states};
  return {F32(x), F32(x, 0.1, 0.9), F32({channels, states}, -2.0, 0.0), F32(b), F32(b)};
}

// From zeros, and continued from a state; the scan and its gradient.
void AddCases(const std::string& label, std::vector<InputSpec> operands, bool check_gradient,
              std::vector<OpCase>* cases) {
  const Shape x = operands[0].type.shape, a = operands[2].type.shape;
  for (const bool continues : {false, true}) {
    if (continues) operands.push_back(F32({x.dim(0), x.dim(2), a.dim(1)}));
    OpCase scan;
    scan.op = "selective_scan";
    scan.label = label + (continues ? ", continued" : "");
    scan.inputs = operands;
    scan.reference = SelectiveScan;
    scan.check_gradient = check_gradient;
    scan.is_f32_only = true;
    OpCase gradient = scan;
    gradient.op = "selective_scan_grad";
    gradient.inputs.insert(gradient.inputs.begin(), F32(x));
    gradient.reference = SelectiveScanGrad;
    cases->push_back(std::move(scan));
    cases->push_back(std::move(gradient));
  }
}

}  // namespace

FamilyCases SelectiveScanCases() {
  FamilyCases family;
  AddCases("small", Operands(2, 4, 3, 2), true, &family.cases);
  AddCases("splits", Operands(6, 3, 6, 6), false, &family.cases);
  AddCases("more than a chunk", Operands(2, 37, 5, 4), false, &family.cases);
  AddCases("more than a block", Operands(1, 20, 70, 17), false, &family.cases);
  const std::vector<InputSpec> operands = Operands(2, 4, 3, 2);
  const auto with = [&](size_t i, const InputSpec& other) {
    std::vector<InputSpec> changed = operands;
    changed[i] = other;
    return changed;
  };
  std::vector<InputSpec> continued = operands;
  continued.push_back(F32({2, 3, 3}));
  std::vector<InputSpec> of_gradient = operands;
  of_gradient.insert(of_gradient.begin(), F32({2, 4, 4}));
  family.rejections = {
      {"selective_scan",
       with(0, F32({2, 4})),
       {},
       "selective_scan: x is not (B, T, D): x f32[2,4], step f32[2,4,3], a f32[3,2], b f32[2,4,2], "
       "c f32[2,4,2]"},
      {"selective_scan",
       with(1, F32({2, 4, 1})),
       {},
       "selective_scan: step is not like x: x f32[2,4,3], step f32[2,4,1], a f32[3,2], b "
       "f32[2,4,2], c f32[2,4,2]"},
      {"selective_scan",
       with(2, F32({2, 2})),
       {},
       "selective_scan: a is not (D, N): x f32[2,4,3], step f32[2,4,3], a f32[2,2], b f32[2,4,2], "
       "c f32[2,4,2]"},
      {"selective_scan",
       with(4, F32({2, 4, 3})),
       {},
       "selective_scan: c is not (B, T, N): x f32[2,4,3], step f32[2,4,3], a f32[3,2], b "
       "f32[2,4,2], c f32[2,4,3]"},
      {"selective_scan",
       with(3, {{DType::kBF16, {2, 4, 2}}}),
       {},
       "selective_scan: b is not f32: x f32[2,4,3], step f32[2,4,3], a f32[3,2], b bf16[2,4,2], c "
       "f32[2,4,2]"},
      {"selective_scan",
       continued,
       {},
       "selective_scan: state is not (B, D, N): x f32[2,4,3], step f32[2,4,3], a f32[3,2], b "
       "f32[2,4,2], c f32[2,4,2], state f32[2,3,3]"},
      {"selective_scan_grad",
       of_gradient,
       {},
       "selective_scan_grad: dy is not like x: dy f32[2,4,4], x f32[2,4,3], step f32[2,4,3], a "
       "f32[3,2], b f32[2,4,2], c f32[2,4,2]"}};
  const auto gradient = [](std::vector<InputSpec> inputs) {
    inputs.insert(inputs.begin(), inputs[0]);
    return inputs;
  };
  family.large = {Sized("selective_scan", "blocks", Operands(2, 70, 150, 16)),
                  Sized("selective_scan_grad", "blocks", gradient(Operands(2, 70, 150, 16)))};
  family.bench = {Sized("selective_scan", "mini", Operands(8, 256, 512, 16)),
                  Sized("selective_scan_grad", "mini", gradient(Operands(8, 256, 512, 16)))};
  for (std::vector<OpCase>* const sized : {&family.large, &family.bench}) {
    for (OpCase& one : *sized) one.is_f32_only = true;
  }
  return family;
}

}  // namespace zg::testing
