// Buffer: state of a module that has no gradient, such as the running mean of a normalisation.
// Weights files and checkpoints hold it beside the parameters; every rank has it whole.
//
//   struct Centered : zg::nn::Module {
//     zg::nn::Buffer mean{this, "mean", {256}, zg::Initializer::Zeros()};
//     zg::Var forward(zg::Var x) {  // (B, 256)
//       if (!zg::nn::is_training()) return x - mean;
//       zg::Var batch_mean = zg::mean(x, {0});
//       mean.update(0.9 * zg::Var(mean) + 0.1 * batch_mean);
//       return x - batch_mean;
//     }
//   };
#pragma once

#include "framework/nn/variable.h"

namespace zg::nn {

class Buffer : public Variable {
 public:
  // f32.
  Buffer(const Module* module, const std::string& name, Shape shape, Initializer initializer)
      : Variable(module, name, std::move(shape), initializer, Role::kBuffer) {}

  // Sets the buffer's value after the step to `next`, which has its shape. If `next` differs from
  // micro-batch to micro-batch, the value is the mean over the step's micro-batches, summed in
  // their order. So is that of several calls, such as those of a module that sees two views of a
  // batch. Until then the buffer reads as before. May be called only in the function of Graph::train.
  void update(Var next) const;
};

// Whether the function of Graph::train is being traced.
bool is_training();

}  // namespace zg::nn
