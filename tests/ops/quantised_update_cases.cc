#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/ops/quantised_blocks.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ir::Attributes Attributes() {
  return {{"lr", 0.1}, {"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-8}, {"weight_decay", 0.1}};
}

// create_dynamic_map(signed, max_exponent_bits=7, total_bits=8) of bitsandbytes, from 0 upwards and
// around to the negative values.
std::vector<double> DynamicMap(bool is_signed) {
  std::vector<double> map = {0.0, 1.0};
  for (int i = 0; i < 7; ++i) {
    const int items = (is_signed ? 1 << i : 1 << (i + 1)) + 1;
    std::vector<double> boundaries;  // linspace(0.1, 1, items)
    for (int j = 0; j < items; ++j) boundaries.push_back(0.1 + 0.9 * j / (items - 1));
    for (int j = 0; j + 1 < items; ++j) {
      const double mean = std::pow(10.0, i - 6) * (boundaries[j] + boundaries[j + 1]) / 2;
      map.push_back(mean);
      if (is_signed) map.push_back(-mean);
    }
  }
  std::sort(map.begin(), map.end());
  std::rotate(map.begin(), std::find(map.begin(), map.end(), 0.0), map.end());
  return map;
}

int Nearest(const std::vector<double>& map, double x) {
  int best = 0;
  for (int code = 1; code < static_cast<int>(map.size()); ++code) {
    if (std::abs(map[code] - x) < std::abs(map[best] - x)) best = code;
  }
  return best;
}

ReferenceOutputs Reference(const ReferenceCall& call) {
  const ir::Attributes& attributes = call.attributes;
  std::vector<double> p = call.inputs[0].values, g = call.inputs[1].values;
  ReferenceOutputs states = {call.inputs[2].values, call.inputs[3].values, call.inputs[4].values,
                             call.inputs[5].values};
  auto t = static_cast<double>(call.step.step);
  if (call.inputs.size() == 7) {
    const std::vector<double>& control = call.inputs[6].values;
    if (control[0] == 0.0) return {p, states[0], states[1], states[2], states[3]};
    for (double& x : g) x *= control[0];
    t = control[1];
  }
  const double lr = attributes.Float("lr") * call.step.lr_factor;
  const double beta1 = attributes.Float("beta1"), beta2 = attributes.Float("beta2");
  const std::vector<double> m_map = DynamicMap(true), v_map = DynamicMap(false);
  const auto size = static_cast<int64_t>(p.size());
  for (int64_t begin = 0; begin < size; begin += kQuantisedBlock) {
    const int64_t end = std::min(size, begin + kQuantisedBlock);
    double& m_scale = states[1][begin / kQuantisedBlock];
    double& v_scale = states[3][begin / kQuantisedBlock];
    std::vector<double> m, v;
    double m_most = 0, v_most = 0;
    for (int64_t i = begin; i < end; ++i) {
      m.push_back(beta1 * m_map[static_cast<int>(states[0][i])] * m_scale + (1 - beta1) * g[i]);
      v.push_back(beta2 * v_map[static_cast<int>(states[2][i])] * v_scale +
                  (1 - beta2) * g[i] * g[i]);
      p[i] *= 1.0 - lr * attributes.Float("weight_decay");
      p[i] -= lr * (m.back() / (1 - std::pow(beta1, t))) /
              (std::sqrt(v.back() / (1 - std::pow(beta2, t))) + attributes.Float("epsilon"));
      m_most = std::max(m_most, std::abs(m.back()));
      v_most = std::max(v_most, v.back());
    }
    m_scale = m_most;
    v_scale = v_most;
    for (int64_t i = begin; i < end; ++i) {
      states[0][i] = Nearest(m_map, m_most > 0 ? m[i - begin] / m_most : 0.0);
      states[2][i] = Nearest(v_map, v_most > 0 ? v[i - begin] / v_most : 0.0);
    }
  }
  return {p, states[0], states[1], states[2], states[3]};
}

InputSpec Codes(const Shape& shape) { return {{DType::kU8, shape}, 0.0, 256.0}; }

OpCase Case(std::string label, const Shape& shape) {
  const Shape scales = {NumQuantisedBlocks(shape.num_elements())};
  return {.op = "adam8_update",
          .label = std::move(label),
          .inputs = {F32(shape), F32(shape), Codes(shape), F32(scales, 0.1, 1.0), Codes(shape),
                     F32(scales, 0.1, 1.0)},
          .attributes = Attributes(),
          .reference = Reference,
          // A number that rounding moves across a limit has the next code.
          .tolerance = 1.01 / 255,
          .f32_inputs = {0, 3, 5}};
}

}  // namespace

FamilyCases QuantisedUpdateCases() {
  FamilyCases family;
  family.cases.push_back(Case("less than a block", {5, 7}));
  family.cases.push_back(Case("blocks and a rest", {3, 200}));
  family.cases.push_back(Case("a bucket", {6 * kQuantisedBlock}));
  for (const double factor : {0.75, 0.0}) {
    OpCase controlled = Case(fmt::format("factor {}", factor), {6 * kQuantisedBlock});
    controlled.inputs.push_back(F32({2}));
    controlled.f32_inputs.push_back(6);
    controlled.prepare = [factor](ReferenceCall& call) {
      call.inputs.back().values = {factor, 7.0};
    };
    family.cases.push_back(std::move(controlled));
  }
  OpCase zeros = Case("the first step, without a gradient", {300});
  zeros.prepare = [](ReferenceCall& call) {
    for (int i : {1, 2, 3, 4, 5}) {
      std::fill(call.inputs[i].values.begin(), call.inputs[i].values.end(), 0.0);
    }
  };
  family.cases.push_back(std::move(zeros));
  family.large.push_back(Case("large", {70, 513}));
  family.bench.push_back(Case("{1048576}", {1 << 20}));
  const InputSpec p = F32({300}), scales = F32({2}), codes = Codes({300});
  family.rejections = {
      {"adam8_update",
       {p, F32({30}), codes, scales, codes, scales},
       Attributes(),
       "adam8_update: got p f32[300] and g f32[30], expected p in f32 and g of its shape"},
      {"adam8_update",
       {p, p, p, scales, codes, scales},
       Attributes(),
       "adam8_update: m is f32[300], expected u8[300]"},
      {"adam8_update",
       {p, p, codes, scales, codes, F32({3})},
       Attributes(),
       "adam8_update: v_scale is f32[3], expected f32[2]"},
  };
  return family;
}

}  // namespace zg::testing
