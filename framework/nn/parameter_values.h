// Parameters that are something else for a while: constants, fast weights, averages, normalised
// weights. Works in graphs and eagerly, like torch.func.functional_call.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "framework/nn/functions.h"
#include "framework/nn/module.h"

namespace zg::nn {

// While it exists, functions that read a parameter of the module or of its descendants get the value
// of a function instead, which is called once for each parameter that is read. One step of gradient
// descent inside of a model, whose gradient training takes (MAML, arXiv 1703.03400):
//   std::map<const zg::nn::Parameter*, zg::Var> slope;  // by zg::gradients(inner_loss, ...)
//   const zg::nn::ParameterValues fast(net, [&](const zg::nn::Parameter& parameter) {
//     return parameter - 0.1 * slope[&parameter];
//   });
//   return mse_loss(net(x), y);
// Inside of the function, parameters read as before. It may return an empty Var: the parameter then
// reads as before. A value replaces what Parameter::reads_as makes, too. Error: a value of another
// shape, or not f32. Exists only inside of a function that is traced, or eagerly.
class ParameterValues {
 public:
  using Value = std::function<Var(const Parameter&)>;

  ParameterValues(const Module& module, Value value);
  ~ParameterValues();
  ParameterValues(const ParameterValues&) = delete;
  ParameterValues& operator=(const ParameterValues&) = delete;

 private:
  friend class Trace;

  // What the variable reads as; empty: as without this object.
  Var Of(const Variable& variable);

  Trace& trace_;
  Value value_;
  ParameterValues* outer_;  // the one that exists already; null: none
  std::unordered_map<int64_t, const Parameter*> parameters_;  // by Variable::id()
  std::map<std::pair<int64_t, bool>, Var> known_;             // by Trace::ReadKey
};

// The parameters are constants: gradients pass through the module to its inputs, and not to its
// parameters. Two players in one training function:
//   Var fake = generator(noise);
//   Var loss = bce_with_logits(critic(real), ones) +
//              bce_with_logits(critic(stop_gradient(fake)), zeros);  // the critic's
//   const zg::nn::ConstantParameters constant(critic);
//   return loss + bce_with_logits(critic(fake), ones);               // the generator's
// Groups of parameters can have different optimizers (Graph::add_parameter_group). To exclude
// parameters from training altogether, freeze them (Graph::freeze).
class ConstantParameters : public ParameterValues {
 public:
  explicit ConstantParameters(const Module& module)
      : ParameterValues(module,
                        [](const Parameter& parameter) { return stop_gradient(parameter); }) {}
};

}  // namespace zg::nn
