#include "framework/nn/optimizers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/nn/functions.h"

namespace zg::optim {
namespace {

// (1 - share) average + share x.
Var MovingAverage(Var average, Var x, double share) { return average + share * (x - average); }

// The gradient with L2 regularisation.
Var Regularised(const RuleInputs& in, double weight_decay) {
  return weight_decay == 0.0 ? in.gradient : in.gradient + in.weight_decay * in.parameter;
}

}  // namespace

RmsProp::operator Rule() const {
  Rule rule = {"RmsProp", lr, weight_decay, {"square_avg"}};
  if (centered) rule.states.push_back("grad_avg");
  if (momentum != 0.0) rule.states.push_back("momentum_buffer");
  rule.status = CheckHyperparameters(
      "RmsProp", {{"alpha", alpha, 1.0}, PositiveEpsilon(epsilon), {"momentum", momentum}});
  rule.update = [o = *this](const RuleInputs& in) -> std::vector<Var> {
    const Var g = Regularised(in, o.weight_decay);
    std::vector<Var> results = {Var(), o.alpha * in.states[0] + (1.0 - o.alpha) * square(g)};
    Var variance = results[1];
    if (o.centered) {
      results.push_back(MovingAverage(in.states[1], g, 1.0 - o.alpha));
      variance = variance - square(results[2]);
    }
    Var change = g / (sqrt(variance) + o.epsilon);
    if (o.momentum != 0.0) {
      change = o.momentum * in.states.back() + change;
      results.push_back(change);
    }
    results[0] = in.parameter - in.lr * change;
    return results;
  };
  return rule;
}

Adagrad::operator Rule() const {
  Rule rule = {"Adagrad", lr, weight_decay, {"sum"}};
  rule.status = CheckHyperparameters("Adagrad", {{"lr_decay", lr_decay}, PositiveEpsilon(epsilon)});
  rule.update = [o = *this](const RuleInputs& in) -> std::vector<Var> {
    const Var g = Regularised(in, o.weight_decay);
    const Var sum = in.states[0] + square(g);
    const Var lr = in.lr / (1.0 + o.lr_decay * (in.number - 1.0));
    return {in.parameter - lr * (g / (sqrt(sum) + o.epsilon)), sum};
  };
  return rule;
}

Adadelta::operator Rule() const {
  Rule rule = {"Adadelta", lr, weight_decay, {"square_avg", "acc_delta"}};
  rule.status = CheckHyperparameters("Adadelta", {{"rho", rho, 1.0}, PositiveEpsilon(epsilon)});
  rule.update = [o = *this](const RuleInputs& in) -> std::vector<Var> {
    const Var g = Regularised(in, o.weight_decay);
    const Var v = o.rho * in.states[0] + (1.0 - o.rho) * square(g);
    const Var change = sqrt(in.states[1] + o.epsilon) / sqrt(v + o.epsilon) * g;
    const Var changes = o.rho * in.states[1] + (1.0 - o.rho) * square(change);
    return {in.parameter - in.lr * change, v, changes};
  };
  return rule;
}

Adamax::operator Rule() const {
  Rule rule = {"Adamax", lr, weight_decay, {"exp_avg", "exp_inf"}};
  rule.status = CheckHyperparameters(
      "Adamax", {{"beta1", beta1, 1.0}, {"beta2", beta2, 1.0}, PositiveEpsilon(epsilon)});
  rule.update = [o = *this](const RuleInputs& in) -> std::vector<Var> {
    const Var g = Regularised(in, o.weight_decay);
    const Var m = MovingAverage(in.states[0], g, 1.0 - o.beta1);
    const Var largest = maximum(o.beta2 * in.states[1], abs(g) + o.epsilon);
    const Var lr = in.lr / (1.0 - power(o.beta1, in.number));
    return {in.parameter - lr * (m / largest), m, largest};
  };
  return rule;
}

RAdam::operator Rule() const {
  Rule rule = {"RAdam", lr, weight_decay, {"exp_avg", "exp_avg_sq"}};
  rule.status = CheckHyperparameters(
      "RAdam", {{"beta1", beta1, 1.0}, {"beta2", beta2, 1.0}, PositiveEpsilon(epsilon)});
  rule.update = [o = *this](const RuleInputs& in) -> std::vector<Var> {
    const Var g = o.decoupled ? in.gradient : Regularised(in, o.weight_decay);
    Var p = in.parameter;
    if (o.decoupled && o.weight_decay != 0.0) p = p - (in.lr * in.weight_decay) * p;
    const Var m = MovingAverage(in.states[0], g, 1.0 - o.beta1);
    const Var v = o.beta2 * in.states[1] + (1.0 - o.beta2) * square(g);
    const Var correction1 = 1.0 - power(o.beta1, in.number);
    const Var correction2 = 1.0 - power(o.beta2, in.number);
    const double longest = 2.0 / (1.0 - o.beta2) - 1.0;
    const Var length = longest - 2.0 * in.number * power(o.beta2, in.number) / correction2;
    const Var adapts = (sign(length - 5.0) + 1.0) * 0.5;  // 1 or 0
    const Var square_of_rectification =
        (length - 4.0) * (length - 2.0) / length * (longest / ((longest - 4.0) * (longest - 2.0)));
    const Var rectification = sqrt(adapts * square_of_rectification + (1.0 - adapts));
    const Var of_adaptive = adapts * rectification * sqrt(correction2);
    const Var step = of_adaptive / (sqrt(v) + o.epsilon) + (1.0 - adapts);
    return {p - (in.lr / correction1) * (m * step), m, v};
  };
  return rule;
}

Lion::operator Rule() const {
  Rule rule = {"Lion", lr, weight_decay, {"exp_avg"}};
  rule.status = CheckHyperparameters("Lion", {{"beta1", beta1, 1.0}, {"beta2", beta2, 1.0}});
  rule.update = [o = *this](const RuleInputs& in) -> std::vector<Var> {
    const Var m = in.states[0];
    Var change = sign(o.beta1 * m + (1.0 - o.beta1) * in.gradient);
    if (o.weight_decay != 0.0) change = change + in.weight_decay * in.parameter;
    return {in.parameter - in.lr * change, o.beta2 * m + (1.0 - o.beta2) * in.gradient};
  };
  return rule;
}

Lamb::operator Rule() const {
  Rule rule = {"Lamb", lr, weight_decay, {"exp_avg", "exp_avg_sq"}};
  rule.status = CheckHyperparameters(
      "Lamb", {{"beta1", beta1, 1.0}, {"beta2", beta2, 1.0}, PositiveEpsilon(epsilon)});
  rule.update = [o = *this](const RuleInputs& in) -> std::vector<Var> {
    const Var m = MovingAverage(in.states[0], in.gradient, 1.0 - o.beta1);
    const Var v = o.beta2 * in.states[1] + (1.0 - o.beta2) * square(in.gradient);
    const Var correction1 = 1.0 / (1.0 - power(o.beta1, in.number));
    const Var correction2 = 1.0 / sqrt(1.0 - power(o.beta2, in.number));
    Var u = (m * correction1) / (sqrt(v) * correction2 + o.epsilon);
    if (o.weight_decay != 0.0) u = u + in.weight_decay * in.parameter;
    const Var of_p = in.norm(in.parameter), of_u = in.norm(u);
    const Var both = sign(of_p) * sign(of_u);  // 0 if one of them is
    const Var ratio = both * of_p / (of_u + (1.0 - both)) + (1.0 - both);
    return {in.parameter - (in.lr * ratio) * u, m, v};
  };
  return rule;
}

namespace {

// Adafactor for tensors without rows and columns.
Rule AdafactorOfVectors(const Adafactor& adafactor) {
  Rule rule = {"Adafactor", adafactor.lr, adafactor.weight_decay, {"variance"}};
  rule.status = CheckHyperparameters(
      "Adafactor", {{"epsilon1", adafactor.epsilon1}, {"epsilon2", adafactor.epsilon2}});
  if (!(adafactor.beta2_decay <= 0.0 && std::isfinite(adafactor.beta2_decay))) {
    rule.status = InvalidArgument("Adafactor: beta2_decay is {}, expected a finite number <= 0",
                                  adafactor.beta2_decay);
  }
  if (!(adafactor.clip_threshold >= 1.0 && std::isfinite(adafactor.clip_threshold))) {
    rule.status = InvalidArgument("Adafactor: clip_threshold is {}, expected a finite number >= 1",
                                  adafactor.clip_threshold);
  }
  rule.update = [o = adafactor](const RuleInputs& in) -> std::vector<Var> {
    const Var share = exp(o.beta2_decay * log(in.number));
    const Var v = in.states[0] + share * (square(in.gradient) - in.states[0]);
    const Var u = in.gradient / sqrt(clamp_min(v, o.epsilon1 * o.epsilon1));
    const Var alpha =
        clamp_min(in.rms(in.parameter), o.epsilon2) * minimum(in.lr, 1.0 / sqrt(in.number));
    const Var clip = clamp_min(in.rms(u) / o.clip_threshold, 1.0);
    Var p = in.parameter;
    if (o.weight_decay != 0.0) p = p - (in.lr * in.weight_decay) * p;
    return {p - (alpha / clip) * u, v};
  };
  return rule;
}

}  // namespace

Adafactor::operator Factored() const {
  return {
      lr, beta2_decay, epsilon1, epsilon2, clip_threshold, weight_decay, AdafactorOfVectors(*this)};
}

ScheduleFreeAdamW::operator Rule() const {
  Rule rule = {"ScheduleFreeAdamW", lr, weight_decay, {"z_difference", "exp_avg_sq"}};
  rule.status = CheckHyperparameters("ScheduleFreeAdamW",
                                     {{"beta1", beta1, 1.0},
                                      {"beta2", beta2, 1.0},
                                      PositiveEpsilon(epsilon),
                                      {"warmup_steps", static_cast<double>(warmup_steps)}});
  if (beta1 == 0.0) rule.status = InvalidArgument("ScheduleFreeAdamW: beta1 is 0, expected > 0");
  rule.update = [o = *this](const RuleInputs& in) -> std::vector<Var> {
    // With warm-up over W updates lr_t is lr min(t, W) / W, and c the last square's share of all.
    const double warmup = std::max(1.0, static_cast<double>(o.warmup_steps));
    const Var s = clamp_max(in.number, warmup);
    const Var squares =
        s * (s + 1.0) * (2.0 * s + 1.0) / 6.0 + clamp_min(in.number - warmup, 0.0) * square(s);
    const Var c = square(s) / squares;
    const Var lr = in.lr * (s / warmup);
    const Var difference = in.states[0];
    const Var v = o.beta2 * in.states[1] + (1.0 - o.beta2) * square(in.gradient);
    Var h = in.gradient / (sqrt(v * (1.0 / (1.0 - power(o.beta2, in.number)))) + o.epsilon);
    if (o.weight_decay != 0.0) h = h + in.weight_decay * in.parameter;
    const Var y = in.parameter + c * difference - lr * (1.0 - o.beta1 * (1.0 - c)) * h;
    return {y, (1.0 - c) * (difference - lr * o.beta1 * h), v};
  };
  rule.eval_weights = [o = *this](const RuleInputs& in) {
    return in.parameter + (1.0 - 1.0 / o.beta1) * in.states[0];
  };
  return rule;
}

Rule rule_of(const Sgd& sgd) {
  Rule rule = {"Sgd", sgd.lr, sgd.weight_decay};
  rule.status = MakeUpdateRule(sgd).status();
  if (sgd.momentum != 0.0) rule.states = {"momentum_buffer"};
  rule.update = [o = sgd](const RuleInputs& in) -> std::vector<Var> {
    const Var g = Regularised(in, o.weight_decay);
    if (o.momentum == 0.0) return {in.parameter - in.lr * g};
    const Var m = o.momentum * in.states[0] + g;
    return {in.parameter - in.lr * (o.nesterov ? g + o.momentum * m : m), m};
  };
  return rule;
}

namespace {

Rule AdamRule(const AdamW& adam, bool decoupled) {
  Rule rule = {decoupled ? "AdamW" : "Adam", adam.lr, adam.weight_decay, {"exp_avg", "exp_avg_sq"}};
  rule.status = MakeUpdateRule(adam).status();
  rule.update = [o = adam, decoupled](const RuleInputs& in) -> std::vector<Var> {
    const bool decays = decoupled && o.weight_decay != 0.0;
    // Not p (1 - lr weight_decay): the rounding of that factor would accumulate.
    const Var p = decays ? in.parameter - (in.lr * in.weight_decay) * in.parameter : in.parameter;
    const Var g = decoupled ? in.gradient : Regularised(in, o.weight_decay);
    const Var m = MovingAverage(in.states[0], g, 1.0 - o.beta1);
    const Var v = o.beta2 * in.states[1] + (1.0 - o.beta2) * square(g);
    const Var correction2 = 1.0 / sqrt(1.0 - power(o.beta2, in.number));
    const Var step_size = in.lr / (1.0 - power(o.beta1, in.number));
    return {p - step_size * m / (sqrt(v) * correction2 + o.epsilon), m, v};
  };
  return rule;
}

}  // namespace

Rule rule_of(const Adam& adam) {
  return AdamRule({adam.lr, adam.beta1, adam.beta2, adam.epsilon, adam.weight_decay}, false);
}

Rule rule_of(const AdamW& adam) { return AdamRule(adam, true); }

Rule with_ema(Rule rule, double decay) {
  if (rule.status.ok()) rule.status = CheckHyperparameters("with_ema", {{"decay", decay, 1.0}});
  if (rule.eval_weights != nullptr) {
    rule.status = InvalidArgument("with_ema: {} has weights for evaluation of its own", rule.name);
  }
  const size_t num_states = rule.states.size();
  rule.states.push_back("ema_difference");
  rule.update = [base = std::move(rule.update), decay](const RuleInputs& in) {
    RuleInputs of_base = in;
    of_base.states.pop_back();
    std::vector<Var> results = base(of_base);
    if (results.empty()) return results;
    results.push_back(decay * (in.states.back() + (in.parameter - results[0])));
    return results;
  };
  rule.eval_weights = [num_states](const RuleInputs& in) {
    return in.parameter + in.states[num_states];
  };
  return rule;
}

}  // namespace zg::optim
