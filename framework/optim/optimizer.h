// The optimizers that a graph can train with, as PyTorch defines them. The learning rate comes
// first; the other hyperparameters are fields:
//   zg::optim::AdamW adamw{3e-4};
//   adamw.weight_decay = 0.1;
//   graph.train(adamw, ...);
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/attribute.h"

namespace zg::optim {

// m = momentum m + (g + weight_decay p);  p -= lr m   (without momentum: no m)
struct Sgd {
  double lr = 1e-3;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
};

// Adam (arXiv 1412.6980, algorithm 1) with L2 regularisation: g += weight_decay p.
struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};

// Adam with decoupled weight decay (arXiv 1711.05101): p -= lr weight_decay p.
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
};

using Optimizer = std::variant<Sgd, Adam, AdamW>;

// The update node of an optimizer: op, attributes, and its state tensors' suffixes ("exp_avg", as
// in PyTorch).
struct UpdateRule {
  std::string op;
  ir::Attributes attributes;
  std::vector<std::string> state_names;
};

// Error: a hyperparameter that is not finite or out of its range.
StatusOr<UpdateRule> MakeUpdateRule(const Optimizer& optimizer);

}  // namespace zg::optim
