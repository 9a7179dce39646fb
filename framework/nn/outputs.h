// Outputs: the return value of an eval function: one Var, which gets the name "result", or several;
// none, `zg::Outputs{}`, if the program only fills caches (nn/decoding.h).
//
//   graph.eval("predict", [&](zg::Inputs& in) { return model(in.f32("x", {8, 256})); });
//   graph.eval("measure", [&](zg::Inputs& in) {
//     ...
//     return zg::Outputs{{"logits", logits}, {"loss", loss}};
//   });
// Results are read as f32: conditions as 0 and 1, and i64, which is exact up to 2^24; a larger number can
// be returned in two parts (floor_divide and remainder, nn/functions.h).
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "framework/nn/var.h"

namespace zg {

struct NamedVar {
  std::string name;
  Var var;
};

class Outputs {
 public:
  Outputs(Var result) : items_({{"result", result}}) {}  // NOLINT: implicit, so that a Var will do
  Outputs(std::initializer_list<NamedVar> items) : items_(items) {}

  // Further results beside those that a function such as weighted_mean returns:
  //   return zg::weighted_mean(losses, weights).with("logits", logits);
  Outputs with(const std::string& name, Var var) && {
    items_.push_back({name, var});
    return std::move(*this);
  }

  const std::vector<NamedVar>& items() const { return items_; }

 private:
  std::vector<NamedVar> items_;
};

}  // namespace zg
