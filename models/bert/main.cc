// Trains a BERT to guess masked tokens of a text, which are bytes or those of a tokenizer, from random
// weights or those of a transformers model; prints its accuracy on unseen text.
//   bazel run -c opt //models/bert -- --ranks 2 --zero 2
//   bazel run -c opt //models/bert -- --preset bert-large --plan --ranks 8 --zero 3

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/random.h"
#include "framework/io/token_dataset.h"
#include "framework/text/tokenizer.h"
#include "models/bert/hugging_face.h"
#include "models/bert/masking.h"
#include "models/bert/presets.h"
#include "models/hugging_face/from_flag.h"
#include "models/text/text.h"
#include "models/text/text_flags.h"
#include "models/text/text_windows.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

constexpr int64_t kMaxVocabulary = 1 << 30;

struct Flags {
  std::string preset = "tiny";
  std::string from;
  int64_t context = 0;
  int64_t mask_token = -1;
  models::TextFlags text;
  double lr = 1e-3;
  double weight_decay = 0.01;
};

void AddFlags(FlagParser* parser, Flags* flags) {
  parser->section("Model");
  parser->add_choice(
      "preset", &flags->preset, {"tiny", "mini", "bert-base", "bert-large"},
      "sizes of a known model: tiny 2/2/128/32, mini 4/4/256/128 (layers/heads/channels/context)");
  parser->add_string("from", &flags->from,
                     "a BERT of transformers: sizes of its config.json, weights of its "
                     "model.safetensors",
                     "DIR");
  parser->add_int("context", &flags->context, between(0, kMaxVocabulary),
                  "tokens that are seen at once; 0: as many as the model can");
  parser->add_int(
      "mask-token", &flags->mask_token, between(-1, kMaxVocabulary),
      "token that hides another; -1: [MASK] or <mask> of --tokenizer, or else the last one of "
      "the vocabulary");
  models::AddTextFlags(parser, &flags->text);
  parser->section("Training");
  parser->add_double("lr", &flags->lr, at_least(0), "AdamW's learning rate, after warm-up");
  parser->add_double("weight-decay", &flags->weight_decay, at_least(0), "AdamW's weight decay");
}

struct Task {
  models::BertConfig config;
  models::Masking masking;
  int64_t context = 0;
  models::TextWindows windows;
};

std::optional<int64_t> MaskTokenOf(const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return std::nullopt;
  for (const char* name : {"[MASK]", "<mask>"}) {
    if (const std::optional<uint32_t> id = tokenizer->added_token_id(name)) return *id;
  }
  return std::nullopt;
}

StatusOr<Task> MakeTask(const Job& job, const Flags& flags) {
  models::BertConfig config = models::FindBertPreset(flags.preset)->config;
  if (!flags.from.empty()) {
    ZG_ASSIGN_OR_RETURN(config, models::ConfigFrom(job, flags.from, models::ReadBertConfig));
  }
  if (flags.context > config.context) {
    return InvalidArgument(
        "--context: got {}, expected at most {}, which the model has positions for", flags.context,
        config.context);
  }
  const int64_t context = flags.context > 0 ? flags.context : config.context;
  // The small presets are for bytes and a mask; with a tokenizer, for its tokens and a mask.
  const bool has_any_vocabulary = flags.from.empty() && !flags.text.tokenizer.empty() &&
                                  (flags.preset == "tiny" || flags.preset == "mini");
  ZG_ASSIGN_OR_RETURN(
      const models::Text text,
      models::Text::Open(flags.text, has_any_vocabulary ? 0 : config.vocabulary, context));
  const std::optional<int64_t> mask_token = MaskTokenOf(text.tokenizer());
  if (has_any_vocabulary) config.vocabulary = text.vocabulary() + (mask_token ? 0 : 1);
  models::Masking masking;
  masking.vocabulary = config.vocabulary;
  masking.mask_token =
      flags.mask_token >= 0 ? flags.mask_token : mask_token.value_or(config.vocabulary - 1);
  if (masking.mask_token >= config.vocabulary) {
    return InvalidArgument("--mask-token: got {}, expected one of the {} tokens",
                           masking.mask_token, config.vocabulary);
  }
  ZG_ASSIGN_OR_RETURN(
      models::TextWindows windows,
      models::TextWindows::Create(job, text.tokens(), context, flags.text.eval_windows));
  return Task{config, masking, context, std::move(windows)};
}

struct Score {
  double loss = 0.0;
  double accuracy = 0.0;
  int64_t guesses = 0;
};

StatusOr<Score> Validate(const Job& job, Trainer& trainer, Task* task) {
  const RandomKey key = FoldIn(RandomKey{static_cast<uint64_t>(job.options().seed)}, "validation");
  models::TextWindows& windows = task->windows;
  std::vector<int64_t> tokens, labels;
  const auto hidden = [&](int64_t first_window) -> std::vector<NamedData> {
    tokens = windows.x();
    models::HideTokens(task->masking, key, first_window, task->context, &tokens, &labels);
    return {{"tokens", tokens}, {"labels", labels}};
  };
  ZG_ASSIGN_OR_RETURN(const std::vector<double> means,
                      windows.Validate(trainer, {"loss", "accuracy"}, hidden));
  const int64_t guesses_per_window = task->masking.guesses_per_row(task->context);
  return Score{means[0], means[1], windows.validation_windows() * guesses_per_window};
}

// The share of the validation text that is the training text's most frequent token.
double ShareOfMostFrequent(const TokenSplit& data) {
  std::vector<int64_t> counts(data.train.vocabulary_size());
  for (uint64_t i = 0; i < data.train.size(); ++i) ++counts[data.train[i]];
  const int64_t token = std::max_element(counts.begin(), counts.end()) - counts.begin();
  uint64_t hits = 0;
  for (uint64_t i = 0; i < data.validation.size(); ++i) hits += data.validation[i] == token ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(data.validation.size());
}

Status Run(Job& job, const Flags& flags) {
  ZG_ASSIGN_OR_RETURN(Task task, MakeTask(job, flags));
  const models::BertConfig& config = task.config;
  models::Bert model(config);
  Graph graph("bert");
  const int64_t batch = job.options().batch;
  const auto guess = [&](Inputs& in, int64_t rows) {
    const Shape shape = {rows, task.context};
    const Var tokens = in.i64("tokens", shape), labels = in.i64("labels", shape);
    const Var logits = model(tokens);
    const Var hits = to(equal(argmax(logits, -1), labels), DType::kF32);
    const auto guesses = static_cast<double>(rows * task.masking.guesses_per_row(task.context));
    return Outputs{{"loss", cross_entropy(logits, labels, {.ignore_index = -100})},
                   {"accuracy", sum(hits) / guesses}};
  };
  graph.train(optim::AdamW{.lr = flags.lr, .weight_decay = flags.weight_decay},
              [&](Inputs& in) { return guess(in, batch); });
  task.windows.AddPrograms(graph, guess);

  TrainOptions options;
  options.description =
      fmt::format("bert: {} layers, {} heads, {} channels, context {}, vocabulary {}",
                  config.layers, config.heads, config.channels, task.context, config.vocabulary);
  options.settings = {{"heads", fmt::to_string(config.heads)},  // not implied by any tensor's shape
                      {"mask token", fmt::to_string(task.masking.mask_token)}};
  options.samples_per_micro_batch = batch;
  options.tokens_per_micro_batch = batch * task.context;
  std::unique_ptr<Trainer> made = make_trainer(job, graph, options);
  ZG_RETURN_IF_ERROR(models::LoadFrom(job, flags.from, *made));
  Training training(job, std::move(made), options);
  Trainer& trainer = training.trainer();
  const RandomKey key = FoldIn(RandomKey{static_cast<uint64_t>(job.options().seed)}, "training");
  std::vector<int64_t> tokens, labels;
  while (training.next()) {
    const int64_t step = training.step_number();
    training.step([&](int64_t micro_batch) -> Status {
      ZG_RETURN_IF_ERROR(task.windows.Draw(step, micro_batch));
      tokens = task.windows.x();
      models::HideTokens(task.masking, key, task.windows.FirstDraw(step, micro_batch), task.context,
                         &tokens, &labels);
      return trainer.feed({{"tokens", tokens}, {"labels", labels}});
    });
  }
  if (training.report().was_ended_by_signal) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(const Score score, Validate(job, trainer, &task));
  training.log("validation_loss", score.loss);
  training.log("accuracy", score.accuracy);
  if (job.is_main()) {
    print_out(fmt::format(
        "  validation  {:.2f} % of {} hidden tokens right (the most frequent one: {:.2f} %), loss "
        "{:.4f}\n",
        100.0 * score.accuracy, score.guesses, 100.0 * ShareOfMostFrequent(task.windows.data()),
        score.loss));
  }
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.text.eval_windows = 512;
  FlagParser parser("Trains a BERT to guess hidden tokens of a text.");
  AddFlags(&parser, &flags);
  JobOptions defaults;
  defaults.steps = 3000;
  defaults.batch = 32;
  defaults.lr_schedule = "linear";
  defaults.warmup_steps = 50;
  Job job = Job::start(argc, argv, parser, defaults);
  job.run([&](Job& rank) { return Run(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
