// Which of its two weights a parameter reads as, where the optimizer keeps weights for evaluation beside
// those that it trains: a moving average (optim::with_ema), or ScheduleFreeAdamW's x. Training functions
// read the trained ones, eval functions those for evaluation, unless one of these objects exists.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "framework/nn/module.h"

namespace zg::nn {

class Trace;

// What both classes below share.
class ChosenWeights {
 public:
  ~ChosenWeights();
  ChosenWeights(const ChosenWeights&) = delete;
  ChosenWeights& operator=(const ChosenWeights&) = delete;

 protected:
  ChosenWeights(const Module& module, bool averaged);

 private:
  friend class Trace;

  Trace& trace_;
  std::unordered_set<int64_t> parameters_;  // by Variable::id()
  const bool averaged_;
  ChosenWeights* const outer_;  // the one that exists already; null: none
};

// While it exists, a training function that reads parameters of the module or of its descendants gets
// their averages, as constants: the module is a target network, a teacher or a momentum encoder of
// itself.
//   graph.train(with_ema(rule_of(AdamW{1e-3}), 0.995), [&](zg::Inputs& in) {
//     zg::Var value = q(in.f32("state", {64, 4})), target;
//     {
//       const zg::nn::AveragedParameters averaged(q);
//       target = q(in.f32("next_state", {64, 4}));
//     }
// An eval program of this graph that acts, or is measured, with the trained weights says so by
// TrainedParameters, as eval programs read averages.
//
// The average begins with the initial weights. After update t it is average = decay average +
// (1 - decay) w_t, which step t + 1 reads. It is optimizer state: split over the ranks from stage 1 on,
// and gathered in every micro-batch whose function reads it. Buffers are those of the module. Frozen
// parameters are their own average. Error, when the graph is compiled: an optimizer that keeps no
// average of a parameter that is trained. Exists only inside of a function that is traced, or eagerly.
class AveragedParameters : public ChosenWeights {
 public:
  explicit AveragedParameters(const Module& module) : ChosenWeights(module, /*averaged=*/true) {}
};

// While it exists, an eval function reads the trained weights of the module and of its descendants,
// instead of their averages.
class TrainedParameters : public ChosenWeights {
 public:
  explicit TrainedParameters(const Module& module) : ChosenWeights(module, /*averaged=*/false) {}
};

}  // namespace zg::nn
