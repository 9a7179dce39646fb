// Trains an LSTM on text, byte by byte or in the tokens of a tokenizer; prints its loss on unseen
// text, and a text that is generated token by token from its state.
//   bazel run -c opt //models/lstm -- --ranks 2 --zero 2

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "models/lstm/model.h"
#include "models/text/sample.h"
#include "models/text/text.h"
#include "models/text/text_flags.h"
#include "models/text/text_windows.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

// The longest --prompt; without one, half as many tokens of the data are read. A state has no limit
// of its own.
constexpr int64_t kPromptTokens = 512;

struct Flags {
  models::LstmConfig config;
  int64_t context = 64;
  models::TextFlags text;
  double lr = 3e-3;
  double weight_decay = 0.01;
  models::SampleFlags sample;
};

void AddFlags(FlagParser* parser, Flags* flags) {
  parser->section("Model");
  parser->add_int("layers", &flags->config.layers, at_least(1), "layers of the LSTM");
  parser->add_int("hidden", &flags->config.hidden, at_least(1), "channels of each layer");
  parser->add_int("context", &flags->context, at_least(1), "tokens that gradients go back through");
  models::AddTextFlags(parser, &flags->text);
  parser->section("Training");
  parser->add_double("lr", &flags->lr, at_least(0), "AdamW's learning rate, after warm-up");
  parser->add_double("weight-decay", &flags->weight_decay, at_least(0), "AdamW's weight decay");
  models::AddSampleFlags(parser, &flags->sample);
}

Status Run(Job& job, const Flags& flags) {
  models::LstmConfig config = flags.config;
  ZG_ASSIGN_OR_RETURN(const models::Text text,
                      models::Text::Open(flags.text, /*vocabulary=*/0, flags.context));
  config.vocabulary = text.vocabulary();
  ZG_ASSIGN_OR_RETURN(
      models::TextWindows windows,
      models::TextWindows::Create(job, text.tokens(), flags.context, flags.text.eval_windows));
  ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> prompt, text.Prompt(flags.sample, kPromptTokens));

  models::LstmLanguage model(config);
  Graph graph("lstm");
  const int64_t batch = job.options().batch;
  const Shape shape = {batch, flags.context};
  const auto loss = [&](Inputs& in) {
    return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
  };
  graph.train(optim::AdamW{.lr = flags.lr, .weight_decay = flags.weight_decay}, loss);
  graph.eval("validate", loss);
  std::optional<Generator> generator;
  if (flags.sample.tokens > 0) {
    generator.emplace(graph, GeneratorOptions{.context = flags.context},
                      [&](Var tokens) { return model(tokens); });
  }

  TrainOptions options;
  options.description = fmt::format("lstm: {} layers, {} channels, context {}, vocabulary {}",
                                    config.layers, config.hidden, flags.context, config.vocabulary);
  options.samples_per_micro_batch = batch;
  options.tokens_per_micro_batch = shape.num_elements();
  Training training = train(job, graph, options);
  Trainer& trainer = training.trainer();
  while (training.next()) {
    training.step([&](int64_t micro_batch) {
      return windows.Feed(trainer, training.step_number(), micro_batch);
    });
  }
  if (training.report().was_ended_by_signal) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(const double validation, windows.ValidationLoss(trainer));
  training.log("validation_loss", validation);
  ZG_ASSIGN_OR_RETURN(const std::string lines,
                      text.LossLines(validation, windows.validation_tokens()));
  if (job.is_main()) print_out(lines);
  if (!generator) return Status::Ok();
  const auto seed = static_cast<uint64_t>(job.options().seed);
  ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> sample,
                      generator->generate(trainer, prompt, models::OptionsOf(flags.sample, seed)));
  if (job.is_main()) print_out(text.Continuation(flags.sample, sample));
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.text.eval_windows = 256;
  flags.sample.tokens = 300;
  FlagParser parser("Trains an LSTM on text and lets it write.");
  AddFlags(&parser, &flags);
  JobOptions defaults;
  defaults.steps = 1000;
  defaults.batch = 16;
  defaults.lr_schedule = "cosine";
  defaults.warmup_steps = 20;
  Job job = Job::start(argc, argv, parser, defaults);
  job.run([&](Job& rank) { return Run(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
