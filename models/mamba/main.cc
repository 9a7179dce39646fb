// Trains a Mamba on text, byte by byte or in the tokens of a tokenizer, from random weights or those
// of a transformers model.
//   bazel run -c opt //models/mamba -- --ranks 2 --zero 2
//   bazel run -c opt //models/mamba -- --preset mamba-1.4b --plan --ranks 64 --zero 3

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/mamba/hugging_face.h"
#include "models/mamba/presets.h"
#include "models/text/sample.h"
#include "models/text/text.h"
#include "models/text/text_flags.h"
#include "models/text/text_windows.h"
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
  parser->add_int("context", &flags->context, at_least(1), "tokens of a sample in training");
  models::AddTextFlags(parser, &flags->text);
  parser->section("Training");
  parser->add_double("lr", &flags->lr, at_least(0), "AdamW's learning rate, after warm-up");
  parser->add_double("weight-decay", &flags->weight_decay, at_least(0), "AdamW's weight decay");
  models::AddSampleFlags(parser, &flags->sample);
}

StatusOr<models::MambaConfig> MakeConfig(const Job& job, const Flags& flags) {
  models::MambaConfig config = models::FindMambaPreset(flags.preset)->config;
  if (!flags.from.empty()) {
    if (!job.options().init.empty()) {
      return InvalidArgument("--init: --from {} gives first values already; leave one of them out",
                             flags.from);
    }
    StatusOr<models::MambaConfig> read = models::ReadMambaConfig(flags.from);
    ZG_RETURN_IF_ERROR(read.status().WithContext("--from"));
    config = *read;
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
  ZG_ASSIGN_OR_RETURN(
      models::TextWindows windows,
      models::TextWindows::Create(job, text.tokens(), flags.context, flags.text.eval_windows));
  ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> prompt, text.Prompt(flags.sample, flags.context));
  models::Mamba model(config);
  Graph graph("mamba");
  const int64_t batch = job.options().batch;
  const Shape shape = {batch, flags.context};
  const auto loss = [&](Inputs& in) {
    return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
  };
  graph.train(optim::AdamW{.lr = flags.lr, .beta2 = 0.95, .weight_decay = flags.weight_decay},
              loss);
  graph.eval("validate", loss);
  std::optional<Generator> generator;
  if (flags.sample.tokens > 0) {
    generator.emplace(graph, GeneratorOptions{.context = flags.context},
                      [&](Var tokens) { return model(tokens); });
  }

  TrainOptions options;
  options.description =
      fmt::format("mamba: {} layers, {} channels, {} states, context {}, vocabulary {}",
                  config.layers, config.channels, config.states, flags.context, config.vocabulary);
  options.samples_per_micro_batch = batch;
  options.tokens_per_micro_batch = shape.num_elements();
  std::unique_ptr<Trainer> made = make_trainer(job, graph, options);
  if (!flags.from.empty() && job.options().resume.empty()) {
    ZG_RETURN_IF_ERROR(
        made->load_parameters(flags.from + "/model.safetensors").WithContext("--from"));
  }
  Training training(job, std::move(made), options);
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
