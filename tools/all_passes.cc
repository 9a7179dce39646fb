#include "tools/all_passes.h"

#include <variant>

#include "framework/nn/optimizers.h"
#include "framework/optim/append_update.h"
#include "framework/passes/register_passes.h"
#include "zero/register_passes.h"

namespace zg {
namespace {

PassDef AppendUpdate() {
  PassDef def;
  def.name = "append-update";
  def.doc =
      "Append the optimizer's update of every parameter; optimizer: sgd, adam, adamw, lamb, "
      "adafactor, or muon; average_decay: evaluate with a moving average (sgd, adamw).";
  def.options = {{"optimizer", std::string("sgd")},
                 {"lr", 1e-3},
                 {"momentum", 0.0},
                 {"weight_decay", 0.0},
                 {"average_decay", 0.0}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    const double lr = options.Float("lr");
    const double momentum = options.Float("momentum");
    const double weight_decay = options.Float("weight_decay");
    const std::string& name = options.String("optimizer");
    optim::Optimizer optimizer;
    if (name == "sgd") {
      optimizer = optim::Sgd{lr, momentum, weight_decay};
    } else if (name == "adam") {
      optim::Adam adam;
      adam.lr = lr;
      adam.weight_decay = weight_decay;
      optimizer = adam;
    } else if (name == "adamw") {
      optim::AdamW adamw;
      adamw.lr = lr;
      adamw.weight_decay = weight_decay;
      optimizer = adamw;
    } else if (name == "lamb") {
      optim::Lamb lamb;
      lamb.lr = lr;
      lamb.weight_decay = weight_decay;
      optimizer = lamb;
    } else if (name == "adafactor") {
      optim::Adafactor adafactor;
      adafactor.lr = lr;
      adafactor.weight_decay = weight_decay;
      optimizer = adafactor;
    } else if (name == "muon") {
      optim::Muon muon;
      muon.lr = muon.of_vectors.lr = lr;
      muon.weight_decay = muon.of_vectors.weight_decay = weight_decay;
      optimizer = muon;
    } else {
      return InvalidArgument(
          "got optimizer '{}', expected sgd, adam, adamw, lamb, adafactor or muon", name);
    }
    if (momentum != 0.0 && name != "sgd") {
      return InvalidArgument("got momentum {} for {}, expected sgd", momentum, name);
    }
    if (const double decay = options.Float("average_decay"); decay != 0.0) {
      if (const auto* const sgd = std::get_if<optim::Sgd>(&optimizer)) {
        optimizer = optim::with_ema(optim::rule_of(*sgd), decay);
      } else if (const auto* const adamw = std::get_if<optim::AdamW>(&optimizer)) {
        optimizer = optim::with_ema(optim::rule_of(*adamw), decay);
      } else {
        return InvalidArgument("got average_decay {} for {}, expected sgd or adamw", decay, name);
      }
    }
    ZG_ASSIGN_OR_RETURN(optim::UpdateRules rules, optim::MakeUpdateRules(optimizer, {}));
    return std::unique_ptr<Pass>(std::make_unique<optim::AppendUpdate>(std::move(rules)));
  };
  return def;
}

}  // namespace

void RegisterAllPasses(PassRegistry& registry) {
  RegisterPasses(registry);
  zero::RegisterPasses(registry);
  registry.Register(AppendUpdate());
}

}  // namespace zg
