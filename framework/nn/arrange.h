// Modules that only rearrange elements, for Sequential.
#pragma once

#include <string>

#include "framework/nn/module.h"
#include "framework/nn/shapes.h"

namespace zg::nn {

class Identity : public Module {
 public:
  using Module::Module;
  Var forward(Var x) override { return x; }
};

// Merges dims first to last into one; by default all dims except the batch's.
class Flatten : public Module {
 public:
  Flatten(const Module* parent, const std::string& name, int64_t first = 1, int64_t last = -1)
      : Module(parent, name), first_(first), last_(last) {}
  Var forward(Var x) override { return flatten(x, first_, last_); }

 private:
  int64_t first_;
  int64_t last_;
};

}  // namespace zg::nn
