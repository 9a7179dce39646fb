// Trains a Llama on text, byte by byte or in the tokens of a tokenizer, from random weights or those
// of a transformers model.
//   bazel run -c opt //models/llama -- --ranks 2 --zero 2
//   bazel run -c opt //models/llama -- --preset llama3-8b --plan --ranks 64 --zero 3

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "models/hugging_face/from_flag.h"
#include "models/llama/hugging_face.h"
#include "models/llama/presets.h"
#include "models/text/language.h"
#include "models/text/sample.h"
#include "models/text/text.h"
#include "models/text/text_flags.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

constexpr int64_t kMaxVocabulary = 1 << 30;
constexpr int64_t kMaxExperts = 1 << 16;

struct Flags {
  std::string preset = "mini";
  std::string from;
  int64_t context = 0;
  int64_t experts = 0;
  int64_t experts_per_token = 0;
  double balance = 0.01;
  models::TextFlags text;
  double lr = 1e-3;
  double weight_decay = 0.1;
  models::SampleFlags sample;
};

void AddFlags(FlagParser* parser, Flags* flags) {
  parser->section("Model");
  std::vector<std::string> presets;
  for (const models::LlamaPreset& preset : models::LlamaPresets()) {
    presets.emplace_back(preset.name);
  }
  parser->add_choice(
      "preset", &flags->preset, presets,
      "sizes of a known model; mini has 6 layers, 384 channels, context 256, and the "
      "vocabulary of the data");
  parser->add_string("from", &flags->from,
                     "sizes and weights of a Llama, Mistral, Qwen2 or Qwen3 of transformers; or "
                     "sizes of a mixture of experts",
                     "DIR");
  parser->add_int("context", &flags->context, between(0, kMaxVocabulary),
                  "tokens that a prediction sees; 0: those of the model");
  parser->add_int("experts", &flags->experts, between(0, kMaxExperts),
                  "each layer has so many experts, SwiGLUs of which a token uses some; 0: as many "
                  "as the preset");
  parser->add_int("experts-per-token", &flags->experts_per_token, between(0, kMaxExperts),
                  "experts that a token uses; 0: as many as in the preset, else 2");
  models::AddTextFlags(parser, &flags->text);
  parser->section("Training");
  parser->add_double("lr", &flags->lr, at_least(0), "AdamW's learning rate, after warm-up");
  parser->add_double("weight-decay", &flags->weight_decay, at_least(0), "AdamW's weight decay");
  parser->add_double("balance", &flags->balance, at_least(0),
                     "weight of the loss that is least if all experts are chosen equally often");
  models::AddSampleFlags(parser, &flags->sample);
}

// The weights are those of `from`, too, but a mixture's, whose files have every expert apart.
StatusOr<models::LlamaConfig> SizesFrom(const Job& job, const std::string& from) {
  StatusOr<models::LlamaConfig> config = models::ReadLlamaConfig(from);
  ZG_RETURN_IF_ERROR(config.status().WithContext("--from"));
  if (config->mixture.experts == 0) {
    ZG_RETURN_IF_ERROR(models::CheckFromAlone(job, from));
  } else if (job.options().init.empty() && job.options().resume.empty() && !job.options().plan) {
    return InvalidArgument(
        "--from: {} is a mixture of experts, whose weights must be put together first: bazel run "
        "//tools:convert -- --from {} weights.safetensors, then add --init "
        "weights.safetensors",
        from, from);
  }
  return config;
}

Status SetExperts(const Flags& flags, models::ExpertsConfig* mixture) {
  const int64_t per_token = flags.experts_per_token;
  for (const auto& [flag, got] :
       {std::pair("experts", flags.experts), std::pair("experts-per-token", per_token)}) {
    if (got == 0 || flags.from.empty()) continue;
    return InvalidArgument("--{}: got {}, but the sizes are those of --from; leave it out", flag,
                           got);
  }
  if (flags.experts > 0) mixture->experts = flags.experts;
  if (per_token > 0 && mixture->experts == 0) {
    return InvalidArgument(
        "--experts-per-token: got {}, but the model has no experts; add --experts", per_token);
  }
  if (per_token > 0) mixture->per_token = per_token;
  if (mixture->experts > 0 && mixture->per_token > mixture->experts) {
    return InvalidArgument(
        "--experts-per-token: got {}, expected at most the number of experts, {}",
        mixture->per_token, mixture->experts);
  }
  return Status::Ok();
}

StatusOr<models::LlamaConfig> MakeConfig(const Job& job, const Flags& flags) {
  models::LlamaConfig config = models::FindLlamaPreset(flags.preset)->config;
  if (!flags.from.empty()) {
    ZG_ASSIGN_OR_RETURN(config, SizesFrom(job, flags.from));
  }
  if (flags.context > 0) config.context = flags.context;
  ZG_RETURN_IF_ERROR(SetExperts(flags, &config.mixture));
  return config;
}

Status Run(Job& job, const Flags& flags) {
  ZG_ASSIGN_OR_RETURN(models::LlamaConfig config, MakeConfig(job, flags));
  const bool has_any_vocabulary = flags.from.empty() && flags.preset == "mini";
  ZG_ASSIGN_OR_RETURN(
      const models::Text text,
      models::Text::Open(flags.text, has_any_vocabulary ? 0 : config.vocabulary, config.context));
  if (has_any_vocabulary) config.vocabulary = text.vocabulary();
  models::Llama model(config);
  models::LanguageTask task;
  task.name = "llama";
  task.description = fmt::format(
      "llama: {} layers, {} heads of {} key heads, {} channels, context {}, vocabulary {}",
      config.layers, config.heads, config.key_heads, config.channels, config.context,
      config.vocabulary);
  task.settings = {{"heads", fmt::to_string(config.heads)}};  // not implied by any tensor's shape
  if (config.window > 0) {
    task.description += fmt::format(", window {}", config.window);
    task.settings["window"] = fmt::to_string(config.window);
  }
  const models::ExpertsConfig& mixture = config.mixture;
  if (mixture.experts > 0) {
    task.description +=
        fmt::format(", {} of {} experts per token", mixture.per_token, mixture.experts);
    task.settings["experts-per-token"] = fmt::to_string(mixture.per_token);
    task.penalty = [&] { return flags.balance * model.balance_loss(); };
  }
  task.optimizer = {.lr = flags.lr, .beta2 = 0.95, .weight_decay = flags.weight_decay};
  task.context = task.longest_prompt = config.context;
  if (mixture.experts == 0) task.from = flags.from;
  return models::TrainLanguage(job, task, text, flags.text, flags.sample,
                               [&](Var tokens) { return model(tokens); });
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.sample.tokens = 0;
  FlagParser parser("Trains a Llama on text, and lets it write with --sample-tokens.");
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
