#include "tools/plan/model_graph.h"

#include "framework/nn/nn.h"
#include "models/classifier/model.h"
#include "models/gpt/model.h"
#include "models/llama/presets.h"
#include "models/recipe/model.h"

namespace zg::plan {
namespace {

void TraceGpt(const PlanOptions& options, Graph* graph) {
  models::GptConfig config;
  config.layers = options.layers;
  config.heads = options.heads;
  config.channels = options.channels;
  config.context = options.context;
  config.vocabulary = options.vocabulary;
  config.dropout = options.dropout;
  config.vocabulary_multiple = options.vocabulary_multiple;
  models::Gpt model(config);
  const Shape shape = {options.batch, options.context};
  graph->train(optim::AdamW{}, [&](Inputs& in) {
    return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
  });
  if (options.optimizer == "muon") {
    graph->add_parameter_group({"muon", "blocks", optim::Muon{}});
  }
}

void TraceLlama(const PlanOptions& options, Graph* graph) {
  models::Llama model(options.llama);
  const Shape shape = {options.batch, options.llama.context};
  graph->train(optim::AdamW{}, [&](Inputs& in) {
    return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
  });
}

void TraceRecipe(const PlanOptions& options, Graph* graph) {
  models::Recipe model(options.layers, options.width);
  const Shape shape = {options.batch, options.width};
  graph->train(optim::Adam{},
               [&](Inputs& in) { return mse_loss(model(in.f32("x", shape)), in.f32("y", shape)); });
}

void TraceClassifier(const PlanOptions& options, Graph* graph) {
  const models::ClassifierConfig config;
  models::Classifier model(config);
  graph->train(optim::Sgd{}, [&](Inputs& in) {
    return cross_entropy(model(in.f32("x", {options.batch, config.inputs})),
                         in.i64("y", {options.batch}));
  });
}

}  // namespace

Status TraceModel(const PlanOptions& options, Graph* graph) {
  if (options.model == "gpt") {
    TraceGpt(options, graph);
  } else if (options.model == "llama") {
    TraceLlama(options, graph);
  } else if (options.model == "recipe") {
    TraceRecipe(options, graph);
  } else if (options.model == "classifier") {
    TraceClassifier(options, graph);
  } else {
    return InvalidArgument("--model: got '{}', expected gpt, llama, recipe or classifier",
                           options.model);
  }
  graph->config() = options.compile;
  return graph->status();
}

std::string DescribeModel(const PlanOptions& options) {
  if (options.model == "gpt") {
    return fmt::format("gpt: {} layers, {} heads, {} channels, context {}, vocabulary {}",
                       options.layers, options.heads, options.channels, options.context,
                       options.vocabulary);
  }
  if (options.model == "llama") {
    const models::LlamaConfig& llama = options.llama;
    return fmt::format(
        "llama: {} layers, {} heads and {} of keys, {} channels, {} hidden, context {}, vocabulary "
        "{}",
        llama.layers, llama.heads, llama.key_heads, llama.channels, llama.hidden, llama.context,
        llama.vocabulary);
  }
  if (options.model == "recipe") {
    return fmt::format("recipe: {} layers of {} x {}", options.layers, options.width,
                       options.width);
  }
  return options.model;
}

std::string BlocksOf(const std::string& model) {
  if (model == "gpt") return "blocks.*";
  return model == "llama" ? "model.layers.*" : "";
}

}  // namespace zg::plan
