// Adafactor's update in doubles, for a tensor or a bucket, flat or in parts.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/base/exact_sum.h"
#include "framework/ops/factored_shapes.h"
#include "tests/ops/op_case.h"

namespace zg::testing {

// For buckets in parts.
inline constexpr int64_t kParts = 6;
inline constexpr int64_t kPartElements = 96;
// The cut of each of their tensors: the size of the dim, the elements within one index of it, and
// its groups.
struct Cut {
  int64_t dim, inner, groups;
};
inline constexpr Cut kCuts[] = {{12, 5, 1}, {18, 1, 1}, {36, 4, 3}, {12, 3, 1}};

inline constexpr int kExponent = 10;  // for the gradients' square sums of a bucket

inline double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

inline FactoredTensors MatricesOf(const ReferenceCall& call) {
  return FactoredTensorsOf({nullptr, {{DType::kF32, call.inputs[0].shape}}, call.attributes});
}

// The position of an element of tensor t in a bucket.
inline int64_t PlaceOf(const FactoredTensors& matrices, int64_t t, int64_t element) {
  const FactoredTensor& tensor = matrices.tensors[t];
  if (tensor.parts == 1) return tensor.begin + element;
  const Cut& cut = kCuts[t];
  const int64_t group_size = cut.dim / cut.groups, own_size = group_size / kParts;
  const int64_t index = element / cut.inner % cut.dim;
  const int64_t part = index % group_size / own_size;
  const int64_t own_index = index / group_size * own_size + index % own_size;
  const int64_t own_dim = cut.dim / kParts;
  const int64_t outer = element / cut.inner / cut.dim;
  return part * kPartElements + tensor.begin + (outer * own_dim + own_index) * cut.inner +
         element % cut.inner;
}

inline double NormOfWords(const double* words) {
  double sum = 0;
  for (int i = 0; i < kExactSumWords - 2; ++i) sum += std::ldexp(words[i], 32 * i - 320);
  return std::sqrt(sum);
}

// A call's inputs: p, g, rows, columns, and optionally the control, norms, sums, steps, begins.
struct FactoredReference {
  explicit FactoredReference(const ReferenceCall& call)
      : from(call),
        options(call.attributes),
        matrices(MatricesOf(call)),
        p(call.inputs[0].values),
        g(call.inputs[1].values),
        rows(call.inputs[2].values),
        columns(call.inputs[3].values),
        number(static_cast<double>(call.step.step)),
        is_measured(call.inputs.size() > 5),
        has_control(call.inputs.size() == 5 || call.inputs.size() == 9) {
    if (!has_control) return;
    number = call.inputs[4].values[1];
    for (double& x : g) x *= call.inputs[4].values[0];
  }

  const std::vector<double>& Measure(int index) const {
    return from.inputs[(has_control ? 5 : 4) + index].values;
  }

  // From the sum's index in factor_sums.
  double MeanFromDigits(int64_t sum, int64_t count) const {
    const std::vector<double>& sums = Measure(1);
    const double units = sums[sum] + std::ldexp(sums[sums.size() / 2 + sum], -50);
    return std::ldexp(units, kExponent - 50) / static_cast<double>(count);
  }

  void Run(int64_t t) {
    const FactoredTensor& tensor = matrices.tensors[t];
    const double share = std::pow(number, options.Float("beta2_decay"));
    for (int64_t row = 0; row < tensor.num_rows(); ++row) {
      double mean = 0;
      for (int64_t j = 0; j < tensor.columns; ++j) {
        const double x = g[PlaceOf(matrices, t, row * tensor.columns + j)];
        mean += x * x / static_cast<double>(tensor.columns);
      }
      if (is_measured) mean = MeanFromDigits(tensor.first_row + row, tensor.columns);
      double& state = rows[tensor.first_row + row];
      state += share * (mean - state);
    }
    for (int64_t i = 0; i < tensor.num_columns(); ++i) {
      double mean = 0;
      const int64_t matrix = i / tensor.columns, column = i % tensor.columns;
      for (int64_t row = 0; row < tensor.rows; ++row) {
        const int64_t at = (matrix * tensor.rows + row) * tensor.columns + column;
        const double x = g[PlaceOf(matrices, t, at)];
        mean += x * x / static_cast<double>(tensor.rows);
      }
      if (is_measured)
        mean = MeanFromDigits(matrices.num_rows + tensor.first_column + i, tensor.rows);
      double& state = columns[tensor.first_column + i];
      state += share * (mean - state);
    }
    Apply(t, tensor);
  }

  double Direction(int64_t t, int64_t at) const {
    const FactoredTensor& tensor = matrices.tensors[t];
    const int64_t row = at / tensor.columns, matrix = row / tensor.rows;
    double mean = 0;
    for (int64_t i = 0; i < tensor.rows; ++i) {
      mean += rows[tensor.first_row + matrix * tensor.rows + i] / static_cast<double>(tensor.rows);
    }
    const double epsilon = options.Float("epsilon1");
    const double estimate =
        rows[tensor.first_row + row] *
        columns[tensor.first_column + matrix * tensor.columns + at % tensor.columns] /
        std::max(mean, epsilon);
    return g[PlaceOf(matrices, t, at)] / std::sqrt(std::max(estimate, epsilon * epsilon));
  }

  void Apply(int64_t t, const FactoredTensor& tensor) {
    const int64_t size = tensor.size();
    std::vector<double> u, own;
    for (int64_t at = 0; at < size; ++at) u.push_back(Direction(t, at));
    for (int64_t at = 0; at < size; ++at) own.push_back(p[PlaceOf(matrices, t, at)]);
    double p_norm = Norm(own), u_norm = Norm(u);
    if (is_measured) {
      p_norm = NormOfWords(Measure(0).data() + 2 * t * kExactSumWords);
      u_norm = NormOfWords(Measure(2).data() + t * kExactSumWords);
    }
    const double root = std::sqrt(static_cast<double>(size));
    const double lr = options.Float("lr") * from.step.lr_factor;
    const double alpha =
        std::max(options.Float("epsilon2"), p_norm / root) * std::min(lr, 1.0 / std::sqrt(number));
    const double clip = std::max(1.0, u_norm / root / options.Float("clip_threshold"));
    for (int64_t at = 0; at < size; ++at) {
      double& x = p[PlaceOf(matrices, t, at)];
      x += -lr * options.Float("weight_decay") * x - alpha / clip * u[at];
    }
  }

  const ReferenceCall& from;
  const ir::Attributes& options;
  FactoredTensors matrices;
  std::vector<double> p, g, rows, columns;
  double number;
  const bool is_measured, has_control;
};

}  // namespace zg::testing
