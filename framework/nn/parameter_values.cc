#include "framework/nn/parameter_values.h"

#include <utility>

#include "framework/nn/trace.h"

namespace zg::nn {

ParameterValues::ParameterValues(const Module& module, Value value)
    : trace_(Trace::Of("ParameterValues")), value_(std::move(value)), outer_(trace_.values_) {
  for (const Parameter* const parameter : module.parameters()) {
    parameters_[parameter->id()] = parameter;
  }
  trace_.values_ = this;
}

ParameterValues::~ParameterValues() { trace_.values_ = outer_; }

Var ParameterValues::Of(const Variable& variable) {
  const auto parameter = parameters_.find(variable.id());
  if (parameter == parameters_.end()) return Var();
  const Trace::ReadKey key = trace_.KeyOf(variable);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  ParameterValues* const innermost = std::exchange(trace_.values_, outer_);
  const Var value = value_(*parameter->second);
  trace_.values_ = innermost;
  if (!value.empty()) {
    if (const Status usable = trace_.CheckUsable(value); !usable.ok()) return trace_.Fail(usable);
    if (const Status fits = variable.CheckReadsAs(value); !fits.ok()) {
      return trace_.Fail(fits.WithContext("ParameterValues"));
    }
  }
  known_[key] = value;
  return value;
}

}  // namespace zg::nn
