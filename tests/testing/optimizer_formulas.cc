#include "tests/testing/optimizer_formulas.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zg::testing {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;

double Number(const ir::Attributes& options, const char* name, double otherwise) {
  return options.Has(name) ? options.Float(name) : otherwise;
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double Rms(const std::vector<double>& values) {
  return Norm(values) / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace

OptimizerFormulas::OptimizerFormulas(const ir::Attributes& options, Shape shape,
                                     std::vector<double> p)
    : optimizer_(options.Has("optimizer") ? options.String("optimizer") : std::string("sgd")),
      lr_(Number(options, "lr", 1e-3)),
      weight_decay_(Number(options, "weight_decay", 0)),
      momentum_(Number(options, "momentum", 0)),
      shape_(std::move(shape)),
      p_(std::move(p)),
      m_(p_.size(), 0.0),
      v_(p_.size(), 0.0) {
  if (shape_.num_dims() < 2) return;
  size_t num_matrices = 1;
  for (int i = 0; i < shape_.num_dims() - 2; ++i) num_matrices *= shape_.dim(i);
  rows_.assign(num_matrices * shape_.dim(-2), 0.0);
  columns_.assign(num_matrices * shape_.dim(-1), 0.0);
}

const std::vector<double>& OptimizerFormulas::Update(const std::vector<double>& g,
                                                     const std::vector<double>& actual) {
  ++number_;
  if (optimizer_ == "sgd") {
    Sgd(g);
  } else if (optimizer_ == "lamb") {
    Lamb(g);
  } else if (optimizer_ == "adafactor") {
    Adafactor(g);
  } else {
    Adam(g, actual);
  }
  return p_;
}

void OptimizerFormulas::Sgd(const std::vector<double>& g) {
  for (size_t i = 0; i < p_.size(); ++i) {
    m_[i] = momentum_ * m_[i] + g[i] + weight_decay_ * p_[i];
    p_[i] -= lr_ * m_[i];
  }
}

void OptimizerFormulas::Adam(const std::vector<double>& g, const std::vector<double>& actual) {
  const bool is_decoupled = optimizer_ == "adamw";
  for (size_t i = 0; i < p_.size(); ++i) {
    const double decay = weight_decay_ * p_[i];
    const double h = g[i] + (is_decoupled ? 0 : decay);
    m_[i] = kBeta1 * m_[i] + (1 - kBeta1) * h;
    v_[i] = kBeta2 * v_[i] + (1 - kBeta2) * h * h;
    // Adam makes a full step of the remainder where a gradient and its decay cancel.
    if (std::abs(h) < 1e-3 * std::abs(decay) || std::abs(h) < 1e-10) {
      p_[i] = actual[i];
      continue;
    }
    if (is_decoupled) p_[i] -= lr_ * decay;
    p_[i] -= lr_ * (m_[i] / (1 - std::pow(kBeta1, number_))) /
             (std::sqrt(v_[i] / (1 - std::pow(kBeta2, number_))) + 1e-8);
  }
}

void OptimizerFormulas::Lamb(const std::vector<double>& g) {
  std::vector<double> u;
  for (size_t i = 0; i < p_.size(); ++i) {
    m_[i] = kBeta1 * m_[i] + (1 - kBeta1) * g[i];
    v_[i] = kBeta2 * v_[i] + (1 - kBeta2) * g[i] * g[i];
    u.push_back((m_[i] / (1 - std::pow(kBeta1, number_))) /
                    (std::sqrt(v_[i] / (1 - std::pow(kBeta2, number_))) + 1e-6) +
                weight_decay_ * p_[i]);
  }
  const double of_p = Norm(p_), of_u = Norm(u);
  const double ratio = of_p > 0 && of_u > 0 ? of_p / of_u : 1.0;
  for (size_t i = 0; i < p_.size(); ++i) p_[i] -= lr_ * ratio * u[i];
}

std::vector<double> OptimizerFormulas::Estimates(const std::vector<double>& g, double share) {
  if (shape_.num_dims() < 2) {
    for (size_t i = 0; i < g.size(); ++i) v_[i] += share * (g[i] * g[i] - v_[i]);
    return v_;
  }
  const size_t num_rows = shape_.dim(-2), num_columns = shape_.dim(-1);
  std::vector<double> row_means(rows_.size(), 0.0), column_means(columns_.size(), 0.0);
  const auto column_of = [&](size_t i) {
    return i / (num_rows * num_columns) * num_columns + i % num_columns;
  };
  for (size_t i = 0; i < g.size(); ++i) {
    row_means[i / num_columns] += g[i] * g[i] / static_cast<double>(num_columns);
    column_means[column_of(i)] += g[i] * g[i] / static_cast<double>(num_rows);
  }
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i] += share * (row_means[i] - rows_[i]);
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i] += share * (column_means[i] - columns_[i]);
  }
  std::vector<double> estimates;
  for (size_t i = 0; i < g.size(); ++i) {
    double mean = 0;
    const size_t first = i / (num_rows * num_columns) * num_rows;
    for (size_t row = first; row < first + num_rows; ++row) {
      mean += rows_[row] / static_cast<double>(num_rows);
    }
    estimates.push_back(rows_[i / num_columns] * columns_[column_of(i)] /
                        std::max(mean, std::ldexp(1.0, -23)));
  }
  return estimates;
}

void OptimizerFormulas::Adafactor(const std::vector<double>& g) {
  const double epsilon = std::ldexp(1.0, -23);
  std::vector<double> u = Estimates(g, std::pow(number_, -0.8));
  for (size_t i = 0; i < g.size(); ++i) u[i] = g[i] / std::sqrt(std::max(u[i], epsilon * epsilon));
  const double alpha =
      std::max(1e-3, Rms(p_)) * std::min(lr_, 1 / std::sqrt(static_cast<double>(number_)));
  const double clip = std::max(1.0, Rms(u));
  for (size_t i = 0; i < p_.size(); ++i) {
    p_[i] -= lr_ * weight_decay_ * p_[i] + alpha / clip * u[i];
  }
}

}  // namespace zg::testing
