// Trains a Mamba on text, byte by byte or in the tokens of a tokenizer, from random weights or those
// of a transformers model.
//   bazel run -c opt //models/mamba -- --ranks 2 --zero 2
//   bazel run -c opt //models/mamba -- --preset mamba-1.4b --plan --ranks 64 --zero 3

#include <fmt/format.h>

#include <string>

#include "models/hugging_face/from_flag.h"
#include "models/mamba/hugging_face.h"
#include "models/mamba/presets.h"
#include "models/text/language.h"
#include "models/text/sample.h"
#include "models/text/text.h"
#include "models/text/text_flags.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

struct Flags {
  std::string preset = "mini";
  std::string from;
  int64_t context = 256;
  models::TextFlags text;
  double lr = 1e-3;
  double weight_decay = 0.1;
  models::SampleFlags sample;
};

void AddFlags(FlagParser* parser, Flags* flags) {
  parser->section("Model");
  parser->add_choice(
      "preset", &flags->preset, {"mini", "mamba-130m", "mamba-370m", "mamba-1.4b"},
      "sizes of a known model; mini has 4 layers, 256 channels, and the vocabulary of the data");
  parser->add_string("from", &flags->from,
                     "a Mamba of transformers: sizes of its config.json, weights of its "
                     "model.safetensors",
                     "DIR");
  parser->add_int("context", &flags->context, between(1, 1 << 24),
                  "tokens of a sample in training");
  models::AddTextFlags(parser, &flags->text);
  parser->section("Training");
  parser->add_double("lr", &flags->lr, at_least(0), "AdamW's learning rate, after warm-up");
  parser->add_double("weight-decay", &flags->weight_decay, at_least(0), "AdamW's weight decay");
  models::AddSampleFlags(parser, &flags->sample);
}

StatusOr<models::MambaConfig> MakeConfig(const Job& job, const Flags& flags) {
  models::MambaConfig config = models::FindMambaPreset(flags.preset)->config;
  if (!flags.from.empty()) {
    ZG_ASSIGN_OR_RETURN(config, models::ConfigFrom(job, flags.from, models::ReadMambaConfig));
  }
  return config;
}

Status Run(Job& job, const Flags& flags) {
  ZG_ASSIGN_OR_RETURN(models::MambaConfig config, MakeConfig(job, flags));
  const bool has_any_vocabulary = flags.from.empty() && flags.preset == "mini";
  ZG_ASSIGN_OR_RETURN(
      const models::Text text,
      models::Text::Open(flags.text, has_any_vocabulary ? 0 : config.vocabulary, flags.context));
  if (has_any_vocabulary) config.vocabulary = text.vocabulary();
  models::Mamba model(config);
  models::LanguageTask task;
  task.name = "mamba";
  task.description =
      fmt::format("mamba: {} layers, {} channels, {} states, context {}, vocabulary {}",
                  config.layers, config.channels, config.states, flags.context, config.vocabulary);
  task.optimizer = {.lr = flags.lr, .beta2 = 0.95, .weight_decay = flags.weight_decay};
  task.context = task.longest_prompt = flags.context;
  task.from = flags.from;
  return models::TrainLanguage(job, task, text, flags.text, flags.sample,
                               [&](Var tokens) { return model(tokens); });
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser("Trains a Mamba on text and lets it write.");
  AddFlags(&parser, &flags);
  JobOptions defaults;
  defaults.steps = 1000;
  defaults.batch = 8;
  defaults.lr_schedule = "cosine";
  defaults.warmup_steps = 20;
  Job job = Job::start(argc, argv, parser, defaults);
  job.run([&](Job& rank) { return Run(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
