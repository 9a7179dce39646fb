#include "framework/nn/parameter.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace zg::nn
