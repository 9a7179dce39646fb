#include "framework/optim/optimizer.h"

#include <cmath>
#include <limits>

namespace zg::optim {
namespace {

struct Range {
  const char* optimizer;
  const char* name;
  double value;
  double end;  // legal: 0 <= value < end
};

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

Status CheckRanges(std::initializer_list<Range> ranges) {
  for (const Range& range : ranges) {
    if (range.value >= 0.0 && range.value < range.end) continue;  // false for NaN as well
    return InvalidArgument("{}: {} is {}, expected {}", range.optimizer, range.name, range.value,
                           range.end == kUnbounded
                               ? "a finite number >= 0"
                               : fmt::format("0 <= {} < {}", range.name, range.end));
  }
  return Status::Ok();
}

StatusOr<UpdateRule> AdamRule(const char* name, const AdamW& adam, bool decoupled) {
  ZG_RETURN_IF_ERROR(CheckRanges({{name, "lr", adam.lr, kUnbounded},
                                  {name, "beta1", adam.beta1, 1.0},
                                  {name, "beta2", adam.beta2, 1.0},
                                  {name, "epsilon", adam.epsilon, kUnbounded},
                                  {name, "weight_decay", adam.weight_decay, kUnbounded}}));
  return UpdateRule{"adam_update",
                    {{"lr", adam.lr},
                     {"beta1", adam.beta1},
                     {"beta2", adam.beta2},
                     {"epsilon", adam.epsilon},
                     {"weight_decay", adam.weight_decay},
                     {"decoupled", decoupled}},
                    {"exp_avg", "exp_avg_sq"}};
}

struct RuleMaker {
  StatusOr<UpdateRule> operator()(const Sgd& sgd) const {
    ZG_RETURN_IF_ERROR(CheckRanges({{"Sgd", "lr", sgd.lr, kUnbounded},
                                    {"Sgd", "momentum", sgd.momentum, kUnbounded},
                                    {"Sgd", "weight_decay", sgd.weight_decay, kUnbounded}}));
    if (sgd.momentum == 0.0) {
      if (sgd.nesterov) return InvalidArgument("Sgd: nesterov needs momentum > 0");
      return UpdateRule{"sgd_update", {{"lr", sgd.lr}, {"weight_decay", sgd.weight_decay}}, {}};
    }
    return UpdateRule{"sgd_momentum_update",
                      {{"lr", sgd.lr},
                       {"momentum", sgd.momentum},
                       {"weight_decay", sgd.weight_decay},
                       {"nesterov", sgd.nesterov}},
                      {"momentum_buffer"}};
  }
  StatusOr<UpdateRule> operator()(const Adam& adam) const {
    return AdamRule("Adam", {adam.lr, adam.beta1, adam.beta2, adam.epsilon, adam.weight_decay},
                    false);
  }
  StatusOr<UpdateRule> operator()(const AdamW& adam) const { return AdamRule("AdamW", adam, true); }
};

}  // namespace

StatusOr<UpdateRule> MakeUpdateRule(const Optimizer& optimizer) {
  return std::visit(RuleMaker(), optimizer);
}

}  // namespace zg::optim
