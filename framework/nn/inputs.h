// Inputs: declares the inputs of a traced function. Their data are fed by name before each run.
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

  // With Sbp::S(dim) each rank is fed its own micro-batch: the logical value is their concatenation
  // along that dim. With Sbp::B() all ranks are fed the same data, such as a constant table.
  // Errors: a duplicate name, a dim < 1, a placement that the shape does not allow.
  Var f32(const std::string& name, const Shape& shape, Sbp placement = Sbp::S(0));
  Var i64(const std::string& name, const Shape& shape, Sbp placement = Sbp::S(0));
  // Fed as bytes, 0 for false.
  Var boolean(const std::string& name, const Shape& shape, Sbp placement = Sbp::S(0));

 private:
  Var Add(const std::string& name, const TensorType& type, Sbp placement);

  nn::Trace* trace_;
  std::set<std::string> names_;
};

}  // namespace zg
