// Rules of optimizers are traced into programs, and an invalid rule is an error of train().

#include "framework/nn/update_rule.h"

#include <gtest/gtest.h>

#include "framework/nn/nn.h"

namespace zg {
namespace {

optim::Rule Momentum() {
  optim::Rule rule;
  rule.name = "Mine";
  rule.lr = 0.5;
  rule.states = {"buffer"};
  rule.update = [](const optim::RuleInputs& in) -> std::vector<Var> {
    const Var m = 0.9 * in.states[0] + in.gradient;
    return {in.parameter - in.lr * m, m};
  };
  return rule;
}

std::string ErrorOf(const optim::Optimizer& optimizer) {
  nn::Module root;
  nn::Linear layer(&root, "layer", 3, 2);
  Graph graph("g");
  graph.train(optimizer, [&](Inputs& in) {
    return mse_loss(layer(in.f32("x", {4, 3})), in.f32("y", {4, 2}));
  });
  return graph.status().message();
}

TEST(UpdateRule, IsTracedIntoAProgram) {
  const optim::Elementwise rule = Momentum();
  ASSERT_TRUE(rule.status.ok()) << rule.status.message();
  EXPECT_EQ(rule.program,
            "t0=scale(i2,factor=0.9);t1=add(t0,i1);t2=multiply(i3,t1);t3=subtract(i0,t2)");
  EXPECT_EQ(rule.results, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(ErrorOf(rule), "");
}

TEST(UpdateRule, LeavesOutWhatNoResultNeedsAndCopiesInputs) {
  optim::Rule rule = Momentum();
  rule.update = [](const optim::RuleInputs& in) -> std::vector<Var> {
    static_cast<void>(gelu(in.parameter));
    return {in.parameter - in.lr * in.gradient, in.gradient};
  };
  const optim::Elementwise traced = rule;
  EXPECT_EQ(traced.program, "t0=multiply(i3,i1);t1=subtract(i0,t0);t2=scale(i1,factor=1.0)");
  EXPECT_EQ(traced.results, (std::vector<int64_t>{1, 2}));
}

TEST(UpdateRule, RejectsWhatIsNoRule) {
  const auto error = [](const std::function<std::vector<Var>(const optim::RuleInputs&)>& update) {
    optim::Rule rule = Momentum();
    rule.update = update;
    return ErrorOf(rule);
  };
  using In = const optim::RuleInputs&;
  EXPECT_EQ(error(nullptr), "graph g, train: optimizer Mine: 'update' is an empty function");
  EXPECT_EQ(error([](In in) { return std::vector<Var>{in.parameter}; }),
            "graph g, train: optimizer Mine: 'update' returned 1 Vars, expected the new parameter "
            "and 1 states");
  EXPECT_EQ(error([](In in) {
              return std::vector<Var>{in.parameter, in.lr};
            }),
            "graph g, train: optimizer Mine: the new state 'buffer' has shape [], expected that of "
            "the parameter");
  EXPECT_EQ(error([](In in) {
              return std::vector<Var>{softmax(in.parameter), in.gradient};
            }),
            "graph g, train: optimizer Mine: softmax is not elementwise; a rule takes elementwise "
            "ops only, since a rank may have a part of a parameter");
  EXPECT_EQ(error([](In in) {
              return std::vector<Var>{Var(), in.gradient};
            }),
            "graph g, train: optimizer Mine: the new parameter: the Var is empty; it was never "
            "given a value");
  EXPECT_EQ(
      error([](In in) {
        return std::vector<Var>{in.parameter * gelu(in.lr), in.gradient};
      }),
      "graph g, train: optimizer Mine: elementwise_update: gelu is not computed for a scalar; "
      "use arithmetic, exp, log, sqrt, minimum or maximum");
  optim::Rule twice = Momentum();
  twice.states = {"buffer", "buffer"};
  EXPECT_EQ(ErrorOf(twice), "graph g, train: optimizer Mine: two states are named 'buffer'");
  optim::Rule negative = Momentum();
  negative.lr = -1;
  EXPECT_EQ(ErrorOf(negative), "graph g, train: Mine: lr is -1, expected a finite number >= 0");
  EXPECT_EQ(ErrorOf(optim::Lion{.beta2 = 1.0}),
            "graph g, train: Lion: beta2 is 1, expected 0 <= beta2 < 1");
}

}  // namespace
}  // namespace zg
