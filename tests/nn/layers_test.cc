#include <gtest/gtest.h>

#include "framework/nn/nn.h"
#include "tests/nn/traced_text.h"

namespace zg::nn {
namespace {

// "name f32[shape] initializer", one line for each parameter.
std::string ParametersOf(const std::function<Var(Inputs&)>& build) {
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) -> Outputs { return build(in); });
  if (!graph.status().ok()) return graph.status().message();
  std::string text;
  for (const ir::StoredTensor& tensor : graph.ir().tensors()) {
    text += tensor.name + " " + tensor.type.ToString() + " " + tensor.initializer.ToString() + "\n";
  }
  return text;
}

TEST(LayersTest, Linear) {
  Linear layer(nullptr, "layer", 16, 3);
  EXPECT_EQ(ParametersOf([&](Inputs& in) {
              return layer(in.f32("x", {2, 16}));
            }),
            "layer.weight f32[3,16] uniform(0.25)\n"
            "layer.bias f32[3] uniform(0.25)\n");
  Linear normal(nullptr, "normal", 16, 3, {true, Initializer::Normal(0.5), Initializer::Zeros()});
  EXPECT_EQ(ParametersOf([&](Inputs& in) {
              return normal(in.f32("x", {2, 16}));
            }),
            "normal.weight f32[3,16] normal(0.5)\n"
            "normal.bias f32[3] zeros\n");
  Linear plain(nullptr, "plain", 16, 3, {.has_bias = false});
  EXPECT_EQ(ParametersOf([&](Inputs& in) {
              return plain(in.f32("x", {2, 16}));
            }),
            "plain.weight f32[3,16] uniform(0.25)\n");
}

TEST(LayersTest, Embedding) {
  Embedding table(nullptr, "table", 7, 4);
  EXPECT_EQ(ParametersOf([&](Inputs& in) { return table(in.i64("ids", {2})); }),
            "table.weight f32[7,4] normal(1)\n");
  Embedding small(nullptr, "small", 7, 4, 0.02);
  EXPECT_EQ(ParametersOf([&](Inputs& in) { return small(in.i64("ids", {2})); }),
            "small.weight f32[7,4] normal(0.02)\n");
  EmbeddingOptions options;
  options.padding_idx = 7;
  Embedding padded(nullptr, "padded", 7, 4, options);
  EXPECT_EQ(ParametersOf([&](Inputs& in) { return padded(in.i64("ids", {2})); }),
            "graph test, eval 'run': padded: padding_idx: got 7, expected one of the rows 0 to 6");
}

TEST(LayersTest, RMSNorm) {
  RMSNorm norm(nullptr, "norm", 4, 1e-5);
  const auto build = [&](Inputs& in) { return norm(in.f32("x", {2, 4})); };
  EXPECT_EQ(ParametersOf(build), "norm.weight f32[4] ones\n");
  EXPECT_NE(TracedText(build).find("rms_norm %x, %norm.weight (epsilon=1e-05)"), std::string::npos);
}

TEST(LayersTest, RMSNormByOnePlusWeight) {
  RMSNorm norm(nullptr, "norm", 4, {.epsilon = 1e-5, .scales_by_one_plus_weight = true});
  const auto build = [&](Inputs& in) { return norm(in.f32("x", {2, 4})); };
  EXPECT_EQ(ParametersOf(build), "norm.weight f32[4] zeros\n");
  EXPECT_NE(TracedText(build).find("shift %norm.weight (offset=1.0)"), std::string::npos);
}

TEST(LayersTest, LayerNormWithoutBias) {
  LayerNorm norm(nullptr, "norm", 4, {.has_bias = false});
  const auto build = [&](Inputs& in) { return norm(in.f32("x", {2, 4})); };
  EXPECT_EQ(ParametersOf(build), "norm.weight f32[4] ones\n");
  EXPECT_FALSE(norm.bias.has_value());
}

TEST(LayersTest, LayerNormOverSeveralDims) {
  LayerNorm norm(nullptr, "norm", {3, 4});
  const auto build = [&](Inputs& in) { return norm(in.f32("x", {2, 3, 4})); };
  EXPECT_EQ(ParametersOf(build),
            "norm.weight f32[3,4] ones\n"
            "norm.bias f32[3,4] zeros\n");
  EXPECT_NE(TracedText(build).find("layer_norm"), std::string::npos);
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return norm(in.f32("x", {2, 4, 3})); });
  EXPECT_EQ(
      graph.status().message(),
      "graph g, eval 'run': norm: layer_norm of %x f32[2,4,3]: expected the last dims [3,4], those "
      "of the weights");
}

TEST(LayersTest, LayerNorm) {
  LayerNorm norm(nullptr, "norm", 4, 1e-6);
  const auto build = [&](Inputs& in) { return norm(in.f32("x", {2, 4})); };
  EXPECT_EQ(ParametersOf(build),
            "norm.weight f32[4] ones\n"
            "norm.bias f32[4] zeros\n");
  EXPECT_NE(TracedText(build).find("layer_norm %x, %norm.weight, %norm.bias (epsilon=1e-06)"),
            std::string::npos);
}

TEST(LayersTest, CausalSelfAttention) {
  CausalSelfAttention attention(nullptr, "attention", 4, 2);
  const auto build = [&](Inputs& in) { return attention(in.f32("x", {1, 3, 4})); };
  EXPECT_EQ(ParametersOf(build),
            "attention.qkv.weight f32[12,4] uniform(0.5)\n"
            "attention.qkv.bias f32[12] uniform(0.5)\n"
            "attention.projection.weight f32[4,4] uniform(0.5)\n"
            "attention.projection.bias f32[4] uniform(0.5)\n");
  EXPECT_EQ(TracedText(build),
            "%x: f32[1,3,4] = input (dtype=\"f32\", name=\"x\", shape=[1,3,4])\n"
            "%attention.qkv.linear: f32[1,3,12] = linear %x, %attention.qkv.weight, "
            "%attention.qkv.bias  // attention.qkv\n"
            "%attention.attention: f32[1,3,4], %attention.attention.1: f32[1,2,3] = attention "
            "%attention.qkv.linear (heads=2)  // attention\n"
            "%attention.projection.linear: f32[1,3,4] = linear %attention.attention, "
            "%attention.projection.weight, %attention.projection.bias  // attention.projection\n"
            "output %attention.projection.linear (name=\"result\")\n");

  CausalSelfAttention uneven(nullptr, "uneven", 4, 3);
  EXPECT_EQ(TracedText([&](Inputs& in) {
              return uneven(in.f32("x", {1, 3, 4}));
            }),
            "graph test, eval 'run': uneven: attention: the last dim of qkv does not divide into 3 "
            "x 3 heads: qkv f32[1,3,12]");
}

TEST(LayersTest, Sequential) {
  Sequential layers(nullptr, "layers");
  layers.add<Linear>(4, 3);
  layers.add<GELU>();
  EXPECT_EQ(
      TracedText([&](Inputs& in) {
        return layers(in.f32("x", {2, 4}));
      }),
      "%x: f32[2,4] = input (dtype=\"f32\", name=\"x\", shape=[2,4])\n"
      "%layers.0.linear: f32[2,3] = linear %x, %layers.0.weight, %layers.0.bias  // layers.0\n"
      "%layers.1.gelu: f32[2,3] = gelu %layers.0.linear  // layers.1\n"
      "output %layers.1.gelu (name=\"result\")\n");
}

TEST(LayersTest, FormsOfGELU) {
  const auto text = [](Module& gelu) {
    return TracedText([&](Inputs& in) { return gelu(in.f32("x", {2})); });
  };
  GELU tanh_form(nullptr, "gelu"), exact(nullptr, "gelu", GeluForm::kErf);
  EXPECT_NE(text(tanh_form).find(" = gelu %x"), std::string::npos) << text(tanh_form);
  EXPECT_NE(text(exact).find(" = gelu_erf %x"), std::string::npos) << text(exact);
}

struct Dropped : Module {
  Linear layer{this, "layer", 4, 4};
  Dropout first{this, "first", 0.25};
  Dropout second{this, "second", 0.25};
  Var forward(Var x) override { return first(second(first(layer(x)))); }
};

std::vector<int64_t> StreamsOf(const Graph& graph) {
  std::vector<int64_t> streams;
  for (const ir::Node* node : graph.ir().NodesOf("dropout")) {
    EXPECT_EQ(node->attributes.Float("probability"), 0.25);
    streams.push_back(node->attributes.Int("stream"));
  }
  return streams;
}

void TraceTraining(Graph* graph, Module* model) {
  graph->train(optim::Sgd{}, [&](Inputs& in) {
    const Var x = in.f32("x", {2, 4});
    return mse_loss((*model)(x), x);
  });
  ASSERT_TRUE(graph->status().ok()) << graph->status().message();
}

TEST(LayersTest, DropoutOnlyWhileTraining) {
  Dropped model;
  Graph graph("test");
  TraceTraining(&graph, &model);
  graph.eval("predict", [&](Inputs& in) { return model(in.f32("x", {2, 4})); });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(StreamsOf(graph).size(), 3u);
  EXPECT_EQ(SectionText(graph, "eval \"predict\"").find("dropout"), std::string::npos);
}

TEST(LayersTest, DropoutStreamsAreStableAndDiffer) {
  Dropped model;
  Graph graph("test");
  TraceTraining(&graph, &model);
  const std::vector<int64_t> streams = StreamsOf(graph);
  ASSERT_EQ(streams.size(), 3u);
  EXPECT_NE(streams[0], streams[1]);
  EXPECT_NE(streams[0], streams[2]) << "one module called twice";
  for (const int64_t stream : streams) EXPECT_GE(stream, 0);

  // Another object, with other modules before it, has the same streams, because these follow from
  // the paths.
  struct Longer : Dropped {
    Dropout before{this, "before", 0.25};
    Var forward(Var x) override { return Dropped::forward(before(x)); }
  } longer;
  Graph other("other");
  TraceTraining(&other, &longer);
  const std::vector<int64_t> longer_streams = StreamsOf(other);
  ASSERT_EQ(longer_streams.size(), 4u);
  EXPECT_EQ(std::vector<int64_t>(longer_streams.begin() + 1, longer_streams.end()), streams);

  // The random numbers after a resumed checkpoint must not change with the library's version.
  EXPECT_EQ(streams[0], 1931661013080518783);
}

TEST(LayersTest, DropoutOfZeroIsNoNode) {
  Linear layer(nullptr, "layer", 4, 4);
  Dropout none(nullptr, "none", 0.0);
  Graph graph("test");
  graph.train(optim::Sgd{}, [&](Inputs& in) {
    const Var x = in.f32("x", {2, 4});
    return mse_loss(none(layer(x)), x);
  });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_TRUE(graph.ir().NodesOf("dropout").empty());
}

}  // namespace
}  // namespace zg::nn
