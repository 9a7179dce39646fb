// Trains an LSTM on text, byte by byte or in the tokens of a tokenizer; prints its loss on unseen
// text, and a text that is generated token by token from its state.
//   bazel run -c opt //models/lstm -- --ranks 2 --zero 2

#include <fmt/format.h>

#include <string>

#include "models/lstm/model.h"
#include "models/text/language.h"
#include "models/text/sample.h"
#include "models/text/text.h"
#include "models/text/text_flags.h"
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
  parser->add_int("layers", &flags->config.layers, between(1, 10000), "layers of the LSTM");
  parser->add_int("hidden", &flags->config.hidden, between(1, 1 << 20), "channels of each layer");
  parser->add_int("context", &flags->context, between(1, 1 << 24),
                  "tokens that gradients go back through");
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
  models::LstmLanguage model(config);
  models::LanguageTask task;
  task.name = "lstm";
  task.description = fmt::format("lstm: {} layers, {} channels, context {}, vocabulary {}",
                                 config.layers, config.hidden, flags.context, config.vocabulary);
  task.optimizer = {.lr = flags.lr, .weight_decay = flags.weight_decay};
  task.context = flags.context;
  task.longest_prompt = kPromptTokens;
  return models::TrainLanguage(job, task, text, flags.text, flags.sample,
                               [&](Var tokens) { return model(tokens); });
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
