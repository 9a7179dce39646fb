#include "framework/nn/averaged_parameters.h"

#include "framework/nn/parameter.h"
#include "framework/nn/trace.h"

namespace zg::nn {

ChosenWeights::ChosenWeights(const Module& module, bool averaged)
    : trace_(Trace::Of(averaged ? "AveragedParameters" : "TrainedParameters")),
      averaged_(averaged),
      outer_(trace_.chosen_weights_) {
  for (const Parameter* const parameter : module.parameters()) parameters_.insert(parameter->id());
  trace_.chosen_weights_ = this;
}

ChosenWeights::~ChosenWeights() { trace_.chosen_weights_ = outer_; }

}  // namespace zg::nn
