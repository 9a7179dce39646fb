// Inputs: where a traced function gets its data from. The data are fed by name before each run.
//
//   Var x = in.f32("x", {128, 256});  // the shape of one micro-batch
#pragma once

#include <set>
#include <string>

#include "framework/nn/var.h"

namespace zg {

class Inputs {
 public:
  explicit Inputs(nn::Trace* trace) : trace_(trace) {}

  // Every rank is fed another micro-batch; on all ranks together the value is split along the dim
  // of `placement`. With Sbp::B() all ranks are fed the same, such as a constant table. Errors: a
  // name given twice, a dim < 1, a placement that the shape does not have.
  Var f32(const std::string& name, const Shape& shape, Sbp placement = Sbp::S(0));
  Var i64(const std::string& name, const Shape& shape, Sbp placement = Sbp::S(0));

 private:
  Var Add(const std::string& name, const TensorType& type, Sbp placement);

  nn::Trace* trace_;
  std::set<std::string> names_;
};

}  // namespace zg
