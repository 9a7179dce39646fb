#include "framework/nn/parameter.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/nn/nn.h"
#include "tests/nn/traced_text.h"

namespace zg::nn {
namespace {

// The innermost value is read, and reads the outer ones itself.
TEST(ParameterTest, CanBeAnotherValueForAWhile) {
  struct Scaled : Module {
    Parameter factor{this, "factor", {3}, Initializer::Zeros()};
    Parameter other{this, "other", {3}, Initializer::Zeros()};
    Var forward(Var x) override {
      const Var scaled = x * factor;
      return scaled + other;
    }
  };
  Scaled model;
  const auto only_factor = [&](Var value) {
    return [&, value](const Parameter& parameter) {
      return &parameter == &model.factor ? value * parameter : Var();
    };
  };
  EXPECT_EQ(TracedText([&](Inputs& in) {
              const Var x = in.f32("x", {2, 3});
              const Var total = zg::sum(x, {0});
              const ParameterValues outer(model, only_factor(total));
              {
                const ParameterValues inner(model, only_factor(zg::exp(total)));
                (void)model(x);
                (void)model(x);
              }
              return model(x);
            }),
            "%x: f32[2,3] = input (dtype=\"f32\", name=\"x\", shape=[2,3])\n"
            "%sum: f32[3] = sum %x (dims=[0])\n"
            "%exp: f32[3] = exp %sum\n"
            "%multiply: f32[3] = multiply %sum, %factor\n"
            "%multiply_1: f32[3] = multiply %exp, %multiply\n"
            "%multiply_2: f32[2,3] = multiply %x, %multiply_1\n"
            "%add: f32[2,3] = add %multiply_2, %other\n"
            "%multiply_3: f32[2,3] = multiply %x, %multiply_1\n"
            "%add_1: f32[2,3] = add %multiply_3, %other\n"
            "%multiply_4: f32[2,3] = multiply %x, %multiply\n"
            "%add_2: f32[2,3] = add %multiply_4, %other\n"
            "output %add_2 (name=\"result\")\n");
  EXPECT_EQ(TracedText([&](Inputs& in) {
              const Var x = in.f32("x", {2, 3});
              const ParameterValues wrong(model, [&](const Parameter&) { return x; });
              return model(x);
            }),
            "graph test, eval 'run': ParameterValues: got f32[2,3] for 'factor', expected f32[3]");
}

// A graph that has used a parameter does not see what changes later, and does not compile.
TEST(ParameterTest, ChangesAfterItsUseAreErrorsOfThatGraphAlone) {
  struct Three : Module {
    Parameter frozen{this, "frozen", {3}, Initializer::Zeros()};
    Parameter initialized{this, "initialized", {3}, Initializer::Zeros()};
    Parameter read_as{this, "read_as", {3}, Initializer::Zeros()};
  };
  const auto use = [](Three& model, Graph* graph) {
    graph->eval("run", [&](Inputs&) {
      return Var(model.frozen) + Var(model.initialized) + Var(model.read_as);
    });
  };
  const std::string prefix = "graph before: after it was used, '";
  const auto expect = [&](const std::function<void(Three&)>& change, const std::string& error) {
    Three model;
    Graph before("before"), after("after");
    use(model, &before);
    EXPECT_TRUE(before.check().ok());
    change(model);
    use(model, &after);
    EXPECT_EQ(before.check().message(), error.empty() ? "" : prefix + error);
    EXPECT_TRUE(after.check().ok());
  };
  expect([](Three& model) { model.frozen.freeze(); },
         "frozen' was frozen; freeze it before, or call Graph::freeze");
  expect([](Three& model) { model.initialized.set_initializer(Initializer::Ones()); },
         "initialized' got another initializer; set it before");
  expect([](Three& model) { model.initialized.set_initializer(Initializer::Zeros()); }, "");
  expect([](Three& model) { model.read_as.reads_as([](Var p) { return exp(p); }); },
         "read_as' got a function to be read as; set it before");
}

}  // namespace
}  // namespace zg::nn
