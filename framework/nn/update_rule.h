// UpdateRule: a user's update rule. It is a function of Vars that is traced like a model and says
// how an optimizer changes a parameter. The ops are elementwise, so every rank updates its own part
// at any stage, with the same bits, and all of them run in one pass over memory. Norms of whole
// tensors are the exception (RuleInputs::norm): they take a pass before it, and are exact on every
// part.
//
//   zg::optim::Rule rule;                                // sign descent with momentum
//   rule.name = "SignDescent";
//   rule.lr = 1e-3;
//   rule.states = {"momentum_buffer"};
//   rule.update = [](const zg::optim::RuleInputs& in) -> std::vector<zg::Var> {
//     const zg::Var m = 0.9 * in.states[0] + in.gradient;
//     return {in.parameter - in.lr * zg::sign(m), m};
//   };
//   graph.train(rule, ...);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/nn/var.h"
#include "framework/optim/optimizer.h"

namespace zg::optim {

// The inputs of an update. Operations on scalars alone run once, in f64; supported are arithmetic,
// exp, log, sqrt, sign, minimum and maximum.
struct RuleInputs {
  Var parameter;
  Var gradient;
  std::vector<Var> states;  // one for each of the rule's state names; they start as zeros
  Var lr;                   // scalars: the rule's, times the schedule's factor
  Var weight_decay;         // the rule's
  Var number;               // number of the update, from 1
  // The norm of x over the whole tensor, a scalar; x must have an element for each of the
  // parameter, and must not depend on a norm.
  std::function<Var(Var x)> norm = nullptr;
  // Likewise the root of the mean of x^2.
  std::function<Var(Var x)> rms = nullptr;
};

// beta^number, for the corrections of moving averages.
Var power(double beta, Var number);

struct Rule {
  std::string name;  // in messages
  double lr = 1e-3;
  double weight_decay = 0.0;
  std::vector<std::string> states = {};  // suffixes of their names: "w.momentum_buffer"
  // The new parameter and the new states, in their order.
  std::function<std::vector<Var>(const RuleInputs&)> update = nullptr;

  // The value that eval programs read instead of the parameter, computed from parameter and states
  // alone; null: the parameter. An average of weights is kept as its difference from the parameter,
  // so that it can begin as zeros whatever the initial weights are.
  std::function<Var(const RuleInputs&)> eval_weights = nullptr;
  Status status = Status::Ok();  // not OK: invalid hyperparameters

  // Traces the rule. It keeps an error, which Graph::train reports: an op that is not elementwise,
  // a number of results other than 1 + states, a result that is a scalar, a hyperparameter that is
  // not finite and >= 0.
  operator Elementwise() const;  // NOLINT: implicit, so that it is an Optimizer
};

}  // namespace zg::optim
