#include "framework/nn/graph.h"

#include <gtest/gtest.h>

#include "framework/ir/printer.h"
#include "framework/nn/nn.h"
#include "tests/nn/traced_text.h"

namespace zg::nn {
namespace {

struct Classifier : Module {
  Linear hidden{this, "hidden", 8, 4};
  Linear output{this, "output", 4, 3};
  Var forward(Var x) { return output(relu(hidden(x))); }
};

TEST(GraphTest, ATracedGraphAsText) {
  Classifier model;
  Graph graph("classifier");
  graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
    Var x = in.f32("x", {5, 8}), y = in.i64("y", {5});
    return cross_entropy(model(x), y);
  });
  graph.eval("predict", [&](Inputs& in) { return model(in.f32("x", {1, 8})); });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(
      ir::Print(graph.ir()),
      "graph \"classifier\" mesh(data=1) micro_batches=1\n"
      "variables:\n"
      "  %hidden.weight: f32[4,8] = variable (dtype=\"f32\", shape=[4,8])  // hidden\n"
      "    tensor \"hidden.weight\" f32[4,8] at 0 init uniform(0.35355339059327373)\n"
      "  %hidden.bias: f32[4] = variable (dtype=\"f32\", shape=[4])  // hidden\n"
      "    tensor \"hidden.bias\" f32[4] at 0 init uniform(0.35355339059327373)\n"
      "  %output.weight: f32[3,4] = variable (dtype=\"f32\", shape=[3,4])  // output\n"
      "    tensor \"output.weight\" f32[3,4] at 0 init uniform(0.5)\n"
      "  %output.bias: f32[3] = variable (dtype=\"f32\", shape=[3])  // output\n"
      "    tensor \"output.bias\" f32[3] at 0 init uniform(0.5)\n"
      "forward:\n"
      "  %x: f32[5,8] = input (dtype=\"f32\", name=\"x\", shape=[5,8])\n"
      "  %y: i64[5] = input (dtype=\"i64\", name=\"y\", shape=[5])\n"
      "  %hidden.linear: f32[5,4] = linear %x, %hidden.weight, %hidden.bias  // hidden\n"
      "  %relu: f32[5,4] = relu %hidden.linear\n"
      "  %output.linear: f32[5,3] = linear %relu, %output.weight, %output.bias  // output\n"
      "  %softmax_cross_entropy: f32[], %softmax_cross_entropy.1: f32[5] = softmax_cross_entropy "
      "%output.linear, %y (divisor=5.0)\n"
      "  output %softmax_cross_entropy (name=\"loss\")\n"
      "eval \"predict\":\n"
      "  %x_1: f32[1,8] = input (dtype=\"f32\", name=\"x\", shape=[1,8])\n"
      "  %hidden.linear_1: f32[1,4] = linear %x_1, %hidden.weight, %hidden.bias  // hidden\n"
      "  %relu_1: f32[1,4] = relu %hidden.linear_1\n"
      "  %output.linear_1: f32[1,3] = linear %relu_1, %output.weight, %output.bias  // output\n"
      "  output %output.linear_1 (name=\"result\")\n");
}

TEST(GraphTest, AnEvalHandsOutWhatItReturns) {
  const auto evaluate = [](Graph* graph) {
    graph->eval("measure", [](Inputs& in) {
      const Var x = in.f32("x", {2, 3});
      const Var constant = in.f32("constant", {}, Sbp::B());
      return Outputs{{"loss", mse_loss(x, x)}, {"x", x}, {"constant", constant}};
    });
    EXPECT_TRUE(graph->status().ok()) << graph->status().message();
    return SectionText(*graph, "eval \"measure\"");
  };
  Graph graph("test");
  EXPECT_EQ(
      evaluate(&graph),
      "%x: f32[2,3] = input (dtype=\"f32\", name=\"x\", shape=[2,3])\n"
      "%constant: f32[] = input (dtype=\"f32\", name=\"constant\", placement=\"B\", shape=[])\n"
      "%mse_loss: f32[] = mse_loss %x, %x (divisor=6.0)\n"
      "output %mse_loss (name=\"loss\")\n"
      "output %x (name=\"x\")\n"
      "output %constant (name=\"constant\")\n");
}

TEST(GraphTest, AScalarOfBroadcastInputsIsNotScaled) {
  Graph graph("test");
  graph.eval("measure", [](Inputs& in) {
    const Var x = in.f32("x", {2, 3}, Sbp::B());
    return mse_loss(x, x);
  });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_TRUE(graph.ir().NodesOf("scale").empty());
}

TEST(GraphTest, LossesMayBeCombinedLinearly) {
  Linear layer(nullptr, "layer", 3, 3);
  Graph graph("test");
  graph.train(optim::Sgd{}, [&](Inputs& in) {
    const Var x = in.f32("x", {2, 3});
    const Var weight = in.f32("weight", {}, Sbp::B());
    return mse_loss(layer(x), x) * weight + 0.5 * mse_loss(x, layer(x));
  });
  EXPECT_TRUE(graph.status().ok()) << graph.status().message();
}

TEST(GraphTest, ResultTypes) {
  Graph graph("test");
  graph.eval("first", [](Inputs& in) { return in.f32("x", {2, 3}); });
  graph.eval("second", [](Inputs& in) {
    return Outputs{{"a", in.f32("a", {2})}, {"b", in.i64("b", {5})}};
  });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(graph.result_type("first", "result").value().ToString(), "f32[2,3]");
  EXPECT_EQ(graph.result_type("second", "b").value().ToString(), "f32[5]");  // returned as f32
  EXPECT_EQ(graph.result_type("third", "a").status().message(),
            "graph test: no eval 'third'; it has 'first', 'second'");
  EXPECT_EQ(graph.result_type("second", "c").status().message(),
            "graph test, eval 'second': no result 'c'; it has 'a', 'b'");
}

TEST(GraphTest, KeepsItsOptimizer) {
  Classifier model;
  Graph graph("test");
  EXPECT_FALSE(graph.optimizer().has_value());
  graph.train(optim::AdamW{.lr = 0.1}, [&](Inputs& in) {
    return cross_entropy(model(in.f32("x", {5, 8})), in.i64("y", {5}));
  });
  ASSERT_TRUE(graph.check().ok()) << graph.check().message();
  ASSERT_TRUE(graph.optimizer().has_value());
  EXPECT_EQ(std::get<optim::AdamW>(*graph.optimizer()).lr, 0.1);
}

}  // namespace
}  // namespace zg::nn
