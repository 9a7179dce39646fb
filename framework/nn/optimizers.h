// Optimizers beside Sgd, Adam and AdamW (framework/optim/optimizer.h): rules of elementwise ops.
//   graph.train(zg::optim::Lion{1e-4}, ...);
#pragma once

#include "framework/nn/update_rule.h"

namespace zg::optim {

// Like torch.optim.RMSprop. g += weight_decay p;  v = alpha v + (1 - alpha) g^2; p -= lr g /
// (sqrt(v) + epsilon). `centered` uses the root of v - a^2, where a is the moving average of g.
// With momentum: m = momentum m + that quotient; p -= lr m.
struct RmsProp {
  double lr = 1e-2;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;
  operator Rule() const;                                // NOLINT: implicit, likewise below
  operator Elementwise() const { return Rule(*this); }  // NOLINT
};

// Like torch.optim.Adagrad. g += weight_decay p;  s += g^2; p -= lr / (1 + (t - 1) lr_decay) g /
// (sqrt(s) + epsilon).
struct Adagrad {
  double lr = 1e-2;
  double lr_decay = 0.0;
  double epsilon = 1e-10;
  double weight_decay = 0.0;
  operator Rule() const;                                // NOLINT
  operator Elementwise() const { return Rule(*this); }  // NOLINT
};

// Like torch.optim.Adadelta (arXiv 1212.5701). g += weight_decay p;  v = rho v + (1 - rho) g^2; d =
// sqrt(a + epsilon) / sqrt(v + epsilon) g;  a = rho a + (1 - rho) d^2;  p -= lr d.
struct Adadelta {
  double lr = 1.0;
  double rho = 0.9;
  double epsilon = 1e-6;
  double weight_decay = 0.0;
  operator Rule() const;                                // NOLINT
  operator Elementwise() const { return Rule(*this); }  // NOLINT
};

// Like torch.optim.Adamax (arXiv 1412.6980, algorithm 2). g += weight_decay p;  m = beta1 m + (1 -
// beta1) g;  u = max(beta2 u, |g| + epsilon);  p -= lr / (1 - beta1^t) m / u.
struct Adamax {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  operator Rule() const;                                // NOLINT
  operator Elementwise() const { return Rule(*this); }  // NOLINT
};

// Like torch.optim.RAdam (arXiv 1908.03265, algorithm 2): Adam whose adaptive steps begin when their
// variance is bounded, and are rectified; steps before that are those of a momentum. g += weight_decay
// p, or, if `decoupled`, p -= lr weight_decay p first.
struct RAdam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool decoupled = false;
  operator Rule() const;                                // NOLINT
  operator Elementwise() const { return Rule(*this); }  // NOLINT
};

// Lion (arXiv 2302.06675, algorithm 2):
// p -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay p);  m = beta2 m + (1 - beta2) g.
struct Lion {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;
  operator Rule() const;                                // NOLINT
  operator Elementwise() const { return Rule(*this); }  // NOLINT
};

// LAMB (arXiv 1904.00962, algorithm 2, with the identity for phi): AdamW in which the step u of a
// tensor, including decay, is scaled by ||p|| / ||u|| (by 1 if a norm is 0).
struct Lamb {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 1e-2;
  operator Rule() const;                                // NOLINT
  operator Elementwise() const { return Rule(*this); }  // NOLINT
};

// Adafactor (arXiv 1804.04235) as in torch.optim.Adafactor. For a tensor with two dims or more, the
// matrices of its last two dims keep a number for each row and each column instead of one for each
// element: with s = t^beta2_decay, row = row + s (mean of g^2 over the row - row), col likewise;  v
// = row col / (mean of rows); vectors: v = v + s (g^2 - v);  u = g / sqrt(max(v, epsilon1^2));  p
// -= lr weight_decay p; p -= max(epsilon2, rms(p)) min(lr, 1 / sqrt(t)) / max(1, rms(u) /
// clip_threshold) u.
struct Adafactor {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  double epsilon1 = 0x1p-23;  // the smallest step from 1 in f32
  double epsilon2 = 1e-3;
  double clip_threshold = 1.0;  // PyTorch's d
  double weight_decay = 0.0;
  operator Factored() const;  // NOLINT
};

// Schedule-free AdamW (arXiv 2405.15682, algorithm 1), as in facebookresearch/schedule_free, with a
// linear warm-up of its own and no other schedule. With gradients at y: v = beta2 v + (1 - beta2)
// g^2;  h = g / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay y; z -= lr h;  x = (1 - c) x + c
// z;  y = (1 - beta1) z + beta1 x, where c is lr_t^2 / sum lr_i^2. Training reads y; eval programs
// read x. The states are z - y and v. The schedule's factor applies to z and y, not to c.
struct ScheduleFreeAdamW {
  double lr = 2.5e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  int64_t warmup_steps = 0;
  operator Rule() const;                                // NOLINT
  operator Elementwise() const { return Rule(*this); }  // NOLINT
};

// Sgd, Adam and AdamW as rules. Their own kernels round in a different order.
Rule rule_of(const Sgd& sgd);
Rule rule_of(const Adam& adam);
Rule rule_of(const AdamW& adam);

// The rule with a moving average of the weights, average = decay average + (1 - decay) w after each
// update, which eval programs read: graph.train(with_ema(rule_of(AdamW{3e-4}), 0.999), ...). The
// average is stored as its difference from the weights, in a state "ema_difference" like any other:
// sharded, saved, and dropped when parameters are frozen. The average begins with the initial
// weights. Error: a decay outside of [0, 1); a rule that averages already.
Rule with_ema(Rule rule, double decay);

}  // namespace zg::optim
