// The optimizers of the pass append-update in double precision, for one parameter.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/attribute.h"
#include "framework/tensor/shape.h"

namespace zg::testing {

class OptimizerFormulas {
 public:
  // `options` are the pass's.
  OptimizerFormulas(const ir::Attributes& options, Shape shape, std::vector<double> p);

  // The parameters after the next update. Where the formulas divide almost zero by almost zero and
  // so give no usable value, these are `actual`.
  const std::vector<double>& Update(const std::vector<double>& g,
                                    const std::vector<double>& actual);

 private:
  void Sgd(const std::vector<double>& g);
  void Adam(const std::vector<double>& g, const std::vector<double>& actual);
  void Lamb(const std::vector<double>& g);
  void Adafactor(const std::vector<double>& g);
  // Adafactor's estimates of squares.
  std::vector<double> Estimates(const std::vector<double>& g, double share);

  const std::string optimizer_;
  const double lr_, weight_decay_, momentum_;
  const Shape shape_;
  int number_ = 0;
  std::vector<double> p_, m_, v_;
  std::vector<double> rows_, columns_;
};

}  // namespace zg::testing
