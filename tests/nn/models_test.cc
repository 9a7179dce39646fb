// Compares the models with the parameters of the PyTorch models of tests/reference.
#include <gtest/gtest.h>

#include <map>

#include "framework/io/safetensors.h"
#include "framework/optim/append_update.h"
#include "framework/passes/build_backward.h"
#include "framework/passes/infer_sbp.h"
#include "models/classifier/model.h"
#include "models/gpt/model.h"
#include "models/recipe/model.h"

namespace zg::models {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

Shapes ReferenceShapes(const std::string& name) {
  const auto file = SafetensorsFile::Open("tests/reference/" + name + ".safetensors");
  EXPECT_TRUE(file.ok()) << file.status().message();
  Shapes shapes;
  if (!file.ok()) return shapes;
  for (const SafetensorsEntry& entry : file->entries()) {
    if (entry.name.rfind("data.", 0) != 0) shapes[entry.name] = entry.shape;
  }
  return shapes;
}

Shapes ShapesOf(const Graph& graph) {
  Shapes shapes;
  for (const NamedParameter& parameter : graph.named_parameters()) {
    shapes[parameter.name] = parameter.shape.dims();
  }
  return shapes;
}

void TraceRecipe(Graph* graph, int64_t depth, int64_t width) {
  Recipe model(depth, width);
  graph->train(optim::Adam{}, [&](Inputs& in) {
    const Var x = in.f32("x", {8, width});
    return mse_loss(model(x), in.f32("y", {8, width}));
  });
}

void TraceClassifier(Graph* graph, const ClassifierConfig& config) {
  Classifier model(config);
  graph->train(optim::Sgd{}, [&](Inputs& in) {
    const Var x = in.f32("x", {16, config.inputs});
    return cross_entropy(model(x), in.i64("y", {16}));
  });
}

void TraceGpt(Graph* graph, const GptConfig& config, int64_t time) {
  Gpt model(config);
  graph->train(optim::AdamW{}, [&](Inputs& in) {
    const Var x = in.i64("x", {2, time});
    return cross_entropy(model(x), in.i64("y", {2, time}));
  });
}

constexpr GptConfig kReferenceGpt = {2, 2, 32, 16, 61};

TEST(ModelsTest, RecipeHasTheParametersOfTheReference) {
  Graph graph("mlp");
  TraceRecipe(&graph, 4, 32);
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(ShapesOf(graph), ReferenceShapes("mlp"));
}

TEST(ModelsTest, ClassifierHasTheParametersOfTheReference) {
  Graph graph("classifier");
  TraceClassifier(&graph, {128, 64, 10});
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(ShapesOf(graph), ReferenceShapes("classifier"));
}

TEST(ModelsTest, GptHasTheParametersOfTheReference) {
  Graph graph("gpt");
  TraceGpt(&graph, kReferenceGpt, 16);
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(ShapesOf(graph), ReferenceShapes("gpt"));
}

TEST(ModelsTest, NumbersOfParameters) {
  Graph recipe("recipe");
  TraceRecipe(&recipe, 20, 2000);
  EXPECT_EQ(recipe.num_parameters(), 20 * (2000 * 2000 + 2000));
  Graph classifier("classifier");
  TraceClassifier(&classifier, {});
  EXPECT_EQ(classifier.num_parameters(), 256 * 128 + 128 + 128 * 10 + 10);
  Graph gpt("gpt");
  TraceGpt(&gpt, {}, 256);
  EXPECT_EQ(gpt.num_parameters(), 10'844'160);
}

TEST(ModelsTest, GptInitializers) {
  Graph graph("gpt");
  TraceGpt(&graph, {8, 2, 32, 16, 61}, 16);
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  const auto initializer_of = [&](const std::string& name) {
    const ir::StoredTensor* tensor = graph.ir().FindTensor(name);
    return tensor == nullptr ? "none" : tensor->initializer.ToString();
  };
  EXPECT_EQ(initializer_of("token_embedding.weight"), "normal(0.02)");
  EXPECT_EQ(initializer_of("position_embedding.weight"), "normal(0.02)");
  EXPECT_EQ(initializer_of("blocks.7.attention.qkv.weight"), "normal(0.02)");
  EXPECT_EQ(initializer_of("blocks.7.attention.qkv.bias"), "zeros");
  EXPECT_EQ(initializer_of("blocks.7.attention.projection.weight"), "normal(0.005)");
  EXPECT_EQ(initializer_of("blocks.7.mlp.expand.weight"), "normal(0.02)");
  EXPECT_EQ(initializer_of("blocks.7.mlp.contract.weight"), "normal(0.005)");
  EXPECT_EQ(initializer_of("blocks.7.mlp.contract.bias"), "zeros");
  EXPECT_EQ(initializer_of("final_norm.weight"), "ones");
}

TEST(ModelsTest, GptDropoutIsAfterEmbeddingsAndSublayers) {
  GptConfig config = kReferenceGpt;
  config.dropout = 0.1;
  Graph graph("gpt");
  TraceGpt(&graph, config, 16);
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  std::vector<std::string> scopes;
  for (const ir::Node* node : graph.ir().NodesOf("dropout")) scopes.push_back(node->scope);
  EXPECT_EQ(scopes, (std::vector<std::string>{"embedding_dropout", "blocks.0.attention_dropout",
                                              "blocks.0.mlp_dropout", "blocks.1.attention_dropout",
                                              "blocks.1.mlp_dropout"}));
}

TEST(ModelsTest, GptTakesAtMostItsContext) {
  Graph shorter("gpt");
  TraceGpt(&shorter, kReferenceGpt, 8);
  EXPECT_TRUE(shorter.status().ok()) << shorter.status().message();
  Graph graph("gpt");
  TraceGpt(&graph, kReferenceGpt, 17);
  EXPECT_EQ(graph.status().message(),
            "graph gpt, train: got tokens i64[2,17], expected (B, T) with T up to the context 16");
}

// The first passes of the compiler work on every model, with its batch split over 3 ranks.
TEST(ModelsTest, CanBeTrained) {
  Graph recipe("recipe");
  TraceRecipe(&recipe, 4, 32);
  Graph classifier("classifier");
  TraceClassifier(&classifier, {});
  Graph gpt("gpt");
  TraceGpt(&gpt, kReferenceGpt, 16);
  for (Graph* graph : {&recipe, &classifier, &gpt}) {
    ASSERT_TRUE(graph->check().ok());
    ir::Graph ir = graph->ir().Clone();
    ir.set_mesh(Mesh::DataParallel(3));
    const auto rule = optim::MakeUpdateRule(*graph->optimizer());
    ASSERT_TRUE(rule.ok());
    const size_t num_parameters = graph->named_parameters().size();
    const auto backward = BuildBackward().Run(ir);
    ASSERT_TRUE(backward.ok()) << backward.status().message();
    EXPECT_EQ(ir.NodesOf("parameter_gradient").size(), num_parameters);
    const auto update = optim::AppendUpdate(optim::UpdateRules{*rule, {}}).Run(ir);
    ASSERT_TRUE(update.ok()) << update.status().message();
    const auto placed = InferSbp().Run(ir);
    ASSERT_TRUE(placed.ok()) << placed.status().message();
  }
}

}  // namespace
}  // namespace zg::models
