#include "framework/optim/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/ops/quantised_blocks.h"

namespace zg::optim {
namespace {

StatusOr<UpdateRule> AdamRule(const char* name, const AdamW& adam, bool decoupled) {
  ZG_RETURN_IF_ERROR(CheckHyperparameters(name, {{"lr", adam.lr},
                                                 {"beta1", adam.beta1, 1.0},
                                                 {"beta2", adam.beta2, 1.0},
                                                 PositiveEpsilon(adam.epsilon),
                                                 {"weight_decay", adam.weight_decay}}));
  return UpdateRule{"adam_update",
                    {{"lr", adam.lr},
                     {"beta1", adam.beta1},
                     {"beta2", adam.beta2},
                     {"epsilon", adam.epsilon},
                     {"weight_decay", adam.weight_decay},
                     {"decoupled", decoupled}},
                    {{"exp_avg"}, {"exp_avg_sq"}},
                    /*counts=*/true};
}

struct RuleMaker {
  StatusOr<UpdateRule> operator()(const Sgd& sgd) const {
    ZG_RETURN_IF_ERROR(CheckHyperparameters(
        "Sgd", {{"lr", sgd.lr}, {"momentum", sgd.momentum}, {"weight_decay", sgd.weight_decay}}));
    if (sgd.momentum == 0.0) {
      if (sgd.nesterov) return InvalidArgument("Sgd: nesterov needs momentum > 0");
      return UpdateRule{"sgd_update", {{"lr", sgd.lr}, {"weight_decay", sgd.weight_decay}}, {}};
    }
    return UpdateRule{"sgd_momentum_update",
                      {{"lr", sgd.lr},
                       {"momentum", sgd.momentum},
                       {"weight_decay", sgd.weight_decay},
                       {"nesterov", sgd.nesterov}},
                      {{"momentum_buffer"}}};
  }
  StatusOr<UpdateRule> operator()(const Adam& adam) const {
    return AdamRule("Adam", {adam.lr, adam.beta1, adam.beta2, adam.epsilon, adam.weight_decay},
                    false);
  }
  StatusOr<UpdateRule> operator()(const AdamW& adam) const { return AdamRule("AdamW", adam, true); }
  StatusOr<UpdateRule> operator()(const Elementwise& rule) const {
    ZG_RETURN_IF_ERROR(rule.status);
    ir::Attributes attributes = {{"lr", rule.lr},
                                 {"weight_decay", rule.weight_decay},
                                 {"program", rule.program},
                                 {"results", rule.results},
                                 {"eval_program", rule.eval_program}};
    std::vector<State> states;
    for (const std::string& name : rule.states) states.push_back({name});
    if (rule.norms.empty()) {
      return UpdateRule{"elementwise_update", attributes, states, /*counts=*/true};
    }
    attributes.Set("norms", rule.norms);
    return UpdateRule{"normed_update", attributes, states, /*counts=*/true};
  }
  StatusOr<UpdateRule> operator()(const Factored& factored) const {
    ZG_ASSIGN_OR_RETURN(UpdateRule rule, (*this)(factored.of_vectors));
    rule.of_matrices.push_back(
        UpdateRule{"factored_update",
                   {{"lr", factored.lr},
                    {"beta2_decay", factored.beta2_decay},
                    {"epsilon1", factored.epsilon1},
                    {"epsilon2", factored.epsilon2},
                    {"clip_threshold", factored.clip_threshold},
                    {"weight_decay", factored.weight_decay}},
                   {{"row_var", StateOf::kRows}, {"col_var", StateOf::kColumns}},
                   /*counts=*/true});
    return rule;
  }
  StatusOr<UpdateRule> operator()(const Muon& muon) const {
    ZG_RETURN_IF_ERROR(
        CheckHyperparameters("Muon", {{"lr", muon.lr},
                                      {"momentum", muon.momentum, 1.0},
                                      {"weight_decay", muon.weight_decay},
                                      {"steps", static_cast<double>(muon.steps), 100},
                                      {"epsilon", muon.epsilon}}));
    if (!std::isfinite(muon.a) || !std::isfinite(muon.b) || !std::isfinite(muon.c)) {
      return InvalidArgument("Muon: a, b and c are {}, {} and {}, expected finite numbers", muon.a,
                             muon.b, muon.c);
    }
    StatusOr<UpdateRule> rule = (*this)(muon.of_vectors);
    if (!rule.ok()) return rule.status().WithContext("Muon's of_vectors");
    rule->of_matrices.push_back(UpdateRule{"muon_update",
                                           {{"lr", muon.lr},
                                            {"momentum", muon.momentum},
                                            {"weight_decay", muon.weight_decay},
                                            {"nesterov", muon.nesterov},
                                            {"match_rms_adamw", muon.match_rms_adamw},
                                            {"steps", muon.steps},
                                            {"epsilon", muon.epsilon},
                                            {"a", muon.a},
                                            {"b", muon.b},
                                            {"c", muon.c}},
                                           {{"momentum_buffer"}}});
    return rule;
  }
  StatusOr<UpdateRule> operator()(const AdamW8bit& adam) const {
    ZG_ASSIGN_OR_RETURN(
        UpdateRule rule,
        AdamRule("AdamW8bit", {adam.lr, adam.beta1, adam.beta2, adam.epsilon, adam.weight_decay},
                 true));
    if (adam.min_elements < 0) {
      return InvalidArgument("AdamW8bit: min_elements is {}, expected 0 or more",
                             adam.min_elements);
    }
    rule.large_elements = adam.min_elements;
    rule.of_large.push_back(UpdateRule{"adam8_update",
                                       {{"lr", adam.lr},
                                        {"beta1", adam.beta1},
                                        {"beta2", adam.beta2},
                                        {"epsilon", adam.epsilon},
                                        {"weight_decay", adam.weight_decay}},
                                       {{"exp_avg", StateOf::kElements, DType::kU8},
                                        {"exp_avg_scale", StateOf::kBlocks},
                                        {"exp_avg_sq", StateOf::kElements, DType::kU8},
                                        {"exp_avg_sq_scale", StateOf::kBlocks}},
                                       /*counts=*/true});
    return rule;
  }
};

}  // namespace

Shape State::ShapeFor(const Shape& parameter) const {
  if (of == StateOf::kBlocks) return {NumQuantisedBlocks(parameter.num_elements())};
  Shape shape = parameter;
  if (of == StateOf::kRows) shape.set_dim(-1, 1);
  if (of == StateOf::kColumns) shape.set_dim(-2, 1);
  return shape;
}

const UpdateRule& UpdateRule::For(const Shape& parameter) const {
  if (!of_matrices.empty() && parameter.num_dims() >= 2) return of_matrices[0];
  if (!of_large.empty() && parameter.num_elements() >= large_elements) return of_large[0];
  return *this;
}

void UpdateRule::ScaleLr(double factor) {
  attributes.Set("lr", attributes.Float("lr") * factor);
  for (UpdateRule& rule : of_matrices) rule.ScaleLr(factor);
  for (UpdateRule& rule : of_large) rule.ScaleLr(factor);
}

StatusOr<UpdateRule> MakeUpdateRule(const Optimizer& optimizer) {
  return std::visit(RuleMaker(), optimizer);
}

std::string ToString(const UpdateRule& rule) {
  std::string text = rule.op;
  for (const auto& [name, value] : rule.attributes.items()) {
    text += fmt::format(" {}={}", name, ir::ToString(value));
  }
  for (const UpdateRule& of_matrices : rule.of_matrices) {
    text += "; of matrices " + ToString(of_matrices);
  }
  for (const UpdateRule& of_large : rule.of_large) {
    text += fmt::format("; of {} elements or more {}", rule.large_elements, ToString(of_large));
  }
  return text;
}

Status CheckHyperparameters(std::string_view optimizer,
                            std::initializer_list<HyperparameterRange> ranges) {
  for (const HyperparameterRange& range : ranges) {
    const bool is_high_enough = range.has_zero ? range.value >= 0.0 : range.value > 0.0;
    if (is_high_enough && range.value < range.end) continue;  // false for NaN as well
    return InvalidArgument("{}: {} is {}, expected {}", optimizer, range.name, range.value,
                           range.end == std::numeric_limits<double>::infinity()
                               ? fmt::format("a finite number {} 0", range.has_zero ? ">=" : ">")
                               : fmt::format("0 <= {} < {}", range.name, range.end));
  }
  return Status::Ok();
}

}  // namespace zg::optim
