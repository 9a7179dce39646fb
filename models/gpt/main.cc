// Trains a GPT-2 on text, byte by byte, or on a token file; prints its loss beside that of a bigram
// model, and a generated text.
//   bazel run -c opt //models/gpt -- --ranks 2 --zero 2
//   bazel run -c opt //models/gpt -- --preset mini --data book.txt

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "models/gpt/bigram.h"
#include "models/gpt/model.h"
#include "models/gpt/presets.h"
#include "models/text/sample.h"
#include "models/text/text.h"
#include "models/text/text_flags.h"
#include "models/text/text_windows.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

constexpr int64_t kMaxVocabulary = 1 << 30;

struct Flags {
  std::string preset;
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t channels = 128;
  int64_t context = 128;
  int64_t short_context = 0;
  int64_t short_steps = 0;
  int64_t vocabulary = 0;  // 0: that of the data
  int64_t vocabulary_multiple = 1;
  double dropout = 0.0;
  int64_t lora = 0;
  models::TextFlags text;
  std::string optimizer = "adamw";
  double lr = 2e-3;
  double muon_lr = 0.02;
  double weight_decay = 0.1;
  int64_t eval_every = 100;
  models::SampleFlags sample;
};

void AddFlags(FlagParser* parser, Flags* flags) {
  parser->section("Model");
  parser->add_choice(
      "preset", &flags->preset, {"mini", "gpt2"},
      "sizes of a known model: mini 6/6/384/256, gpt2 12/12/768/1024 (layers/heads/embd/context)");
  parser->add_int("layers", &flags->layers, between(1, 10000), "transformer blocks");
  parser->add_int("heads", &flags->heads, between(1, 1 << 20),
                  "attention heads; must divide --embd");
  parser->add_int("embd", &flags->channels, between(1, 1 << 20), "channels");
  parser->add_int("context", &flags->context, between(1, 1 << 24), "tokens that a prediction sees");
  parser->add_int(
      "short-context", &flags->short_context, at_least(0),
      "tokens that a prediction sees in the first --short-steps steps, to begin cheaply; "
      "0: --context");
  parser->add_int("short-steps", &flags->short_steps, at_least(0), "see --short-context");
  parser->add_int("vocab", &flags->vocabulary, between(0, kMaxVocabulary),
                  "tokens that the model knows; 0: those of the data, 256 for text");
  parser->add_int(
      "vocab-multiple", &flags->vocabulary_multiple, between(1, kMaxVocabulary),
      "computes logits for a multiple of so many tokens, the last without probability: 64 "
      "is faster on GPUs");
  parser->add_double("dropout", &flags->dropout, between(0, 0.99), "dropout probability");
  parser->add_int("lora", &flags->lora, between(0, 1 << 20),
                  "trains adapters of this rank on the linear layers, and nothing else; 0: none");
  models::AddTextFlags(parser, &flags->text);
  parser->section("Training");
  parser->add_choice("optimizer", &flags->optimizer, {"adamw", "muon"},
                     "adamw, or muon for the blocks' matrices and adamw for the rest");
  parser->add_double("lr", &flags->lr, at_least(0), "AdamW's learning rate, after warm-up");
  parser->add_double("muon-lr", &flags->muon_lr, at_least(0),
                     "Muon's learning rate, after warm-up");
  parser->add_double("weight-decay", &flags->weight_decay, at_least(0), "weight decay, of both");
  parser->add_int("eval-every", &flags->eval_every, at_least(1), "steps between validations");
  models::AddSampleFlags(parser, &flags->sample);
}

Status ApplyPreset(const FlagParser& parser, Flags* flags) {
  if (flags->preset.empty()) return Status::Ok();
  for (const char* name : {"layers", "heads", "embd", "context"}) {
    if (parser.is_given(name))
      return InvalidArgument("--{}: --preset {} sets it already; give one of them", name,
                             flags->preset);
  }
  const models::GptConfig& config = models::FindGptPreset(flags->preset)->config;
  flags->layers = config.layers;
  flags->heads = config.heads;
  flags->channels = config.channels;
  flags->context = config.context;
  return Status::Ok();
}

void AdaptAll(models::Gpt& model, nn::Lora* lora) {
  for (models::GptBlock& block : model.blocks) {
    for (nn::Linear* layer : {&block.attention.qkv, &block.attention.projection, &block.mlp.expand,
                              &block.mlp.contract}) {
      lora->adapt(*layer);
    }
  }
}

class GptRun {
 public:
  GptRun(Job* job, const Flags& flags) : job_(*job), flags_(flags) {}

  Status Run() {
    ZG_RETURN_IF_ERROR(OpenData());
    models::GptConfig config;
    config.layers = flags_.layers;
    config.heads = flags_.heads;
    config.channels = flags_.channels;
    config.context = flags_.context;
    config.vocabulary = text_->vocabulary();
    config.dropout = flags_.dropout;
    config.vocabulary_multiple = flags_.vocabulary_multiple;
    models::Gpt model(config);
    nn::Lora lora({flags_.lora, 2.0 * static_cast<double>(flags_.lora)});
    if (flags_.lora > 0) AdaptAll(model, &lora);
    Graph graph("gpt");
    const auto loss_of = [&](Inputs& in, const Shape& shape) {
      return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
    };
    const auto loss = [&](Inputs& in, int64_t context) {
      return loss_of(in, {job_.options().batch, context});
    };
    optim::AdamW adamw;
    adamw.lr = flags_.lr;
    adamw.beta2 = 0.99;
    adamw.weight_decay = flags_.weight_decay;
    if (flags_.short_context > 0) {
      graph.train(adamw, {flags_.short_context, flags_.context}, loss);
    } else {
      graph.train(adamw, [&](Inputs& in) { return loss(in, flags_.context); });
    }
    if (flags_.optimizer == "muon") {
      if (flags_.lora > 0) {
        return InvalidArgument(
            "--lora: got {} with --optimizer muon, which trains the blocks' own matrices; leave one "
            "of them out",
            flags_.lora);
      }
      graph.add_parameter_group(
          {"muon", "blocks",
           optim::Muon{
               .lr = flags_.muon_lr, .weight_decay = flags_.weight_decay, .of_vectors = adamw}});
    }
    windows_->AddPrograms(graph, [&](Inputs& in, int64_t rows) {
      return loss_of(in, {rows, flags_.context});
    });
    if (flags_.sample.tokens > 0) {
      generator_.emplace(graph, GeneratorOptions{.context = flags_.context},
                         [&](Var tokens) { return model(tokens); });
    }

    if (flags_.lora > 0) {
      graph.freeze("**");
      graph.unfreeze("**.lora_A,**.lora_B");
    }

    TrainOptions options;
    options.init_may_lack = "**.lora_A,**.lora_B";
    options.description = fmt::format(
        "gpt: {} layers, {} heads, {} channels, context {}, vocabulary {}", config.layers,
        config.heads, config.channels, config.context, config.vocabulary);
    options.settings = {{"dropout", fmt::to_string(flags_.dropout)},
                        {"heads", fmt::to_string(flags_.heads)},  // not implied by any tensor's
                                                                  // shape
                        {"training tokens", fmt::to_string(data().train.size())}};
    if (flags_.short_context > 0) {
      options.settings["short steps"] = fmt::to_string(flags_.short_steps);
    }
    options.samples_per_micro_batch = job_.options().batch;
    options.tokens_per_micro_batch = job_.options().batch * flags_.context;
    Training training = train(job_, graph, options);
    Print(fmt::format("\n{} parameters, {} training and {} validation tokens\n",
                      graph.num_parameters(), data().train.size(), data().validation.size()));
    Trainer& trainer = training.trainer();
    while (training.next()) {
      const int64_t step = training.step_number();
      if (!training.report().steps.empty() && (step - 1) % flags_.eval_every == 0) {
        ZG_ASSIGN_OR_RETURN(const double validation, windows_->ValidationLoss(trainer));
        Print(fmt::format("step {}: validation loss {:.4f}\n", step - 1, validation));
        training.log("validation_loss", validation);
      }
      if (flags_.short_context > 0) {
        const int64_t context = step <= flags_.short_steps ? flags_.short_context : flags_.context;
        ZG_RETURN_IF_ERROR(trainer.set_size(context));
        windows_->set_training_context(context);
      }
      training.step(
          [&](int64_t micro_batch) { return windows_->Feed(trainer, step, micro_batch); });
    }
    // The job must end soon: no sample.
    if (training.report().was_ended_by_signal) return Status::Ok();
    return Finish(training);
  }

 private:
  Status OpenData() {
    if ((flags_.short_context > 0) != (flags_.short_steps > 0)) {
      return InvalidArgument(
          "--short-context: got {}, with --short-steps {}; give both of them, or none",
          flags_.short_context, flags_.short_steps);
    }
    if (flags_.short_context >= flags_.context) {
      return InvalidArgument("--short-context: got {}, expected less than --context {}",
                             flags_.short_context, flags_.context);
    }
    if (flags_.channels % flags_.heads != 0) {
      return InvalidArgument("--heads: got {}, expected a divisor of --embd {}", flags_.heads,
                             flags_.channels);
    }
    if (flags_.text.data.empty()) flags_.text.data = {models::SourceText()};
    ZG_ASSIGN_OR_RETURN(
        models::Text text,
        models::Text::Open(
            flags_.text, flags_.vocabulary, flags_.context,
            flags_.vocabulary > 0 ? fmt::format("--vocab {}", flags_.vocabulary) : ""));
    text_.emplace(std::move(text));
    ZG_ASSIGN_OR_RETURN(models::TextWindows windows,
                        models::TextWindows::Create(job_, text_->tokens(), flags_.context,
                                                    flags_.text.eval_windows));
    windows_.emplace(std::move(windows));
    ZG_ASSIGN_OR_RETURN(prompt_, text_->Prompt(flags_.sample, flags_.context));
    return Status::Ok();
  }

  Status Finish(Training& training) {
    Trainer& trainer = training.trainer();
    ZG_ASSIGN_OR_RETURN(const double validation, windows_->ValidationLoss(trainer));
    training.log("validation_loss", validation);
    const double bigram =
        job_.is_main() ? BigramModel::Fit(data().train).MeanNegativeLogLikelihood(data().validation)
                       : 0;
    ZG_ASSIGN_OR_RETURN(
        const std::string lines,
        text_->LossLines(validation, windows_->validation_tokens(),
                         fmt::format("; a bigram model of the same text has {:.4f}", bigram)));
    Print(lines);
    if (generator_) ZG_RETURN_IF_ERROR(PrintSample(trainer));
    return Status::Ok();
  }

  Status PrintSample(Trainer& trainer) {
    const auto seed = static_cast<uint64_t>(job_.options().seed);
    ZG_ASSIGN_OR_RETURN(
        const std::vector<int64_t> sample,
        generator_->generate(trainer, prompt_, models::OptionsOf(flags_.sample, seed)));
    Print(text_->Continuation(flags_.sample, sample));
    return Status::Ok();
  }

  const TokenSplit& data() const { return text_->tokens(); }

  void Print(const std::string& text) const {
    if (job_.is_main()) print_out(text);
  }

  Job& job_;
  Flags flags_;
  std::optional<models::Text> text_;
  std::optional<models::TextWindows> windows_;
  std::vector<int64_t> prompt_;
  std::optional<Generator> generator_;
};

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser("Trains a GPT-2 on text and lets it write.");
  AddFlags(&parser, &flags);
  JobOptions defaults;
  defaults.steps = 1000;
  defaults.batch = 8;
  defaults.lr_schedule = "cosine";
  defaults.warmup_steps = 20;
  Job job = Job::start(argc, argv, parser, defaults);
  job.check_on_all_ranks(ApplyPreset(parser, &flags));
  if (flags.text.data.empty() && job.is_main()) {
    print_error(fmt::format(
        "{} is not there: training on this project's own sources. Debian's package python3.11-doc "
        "has it (tools/setup.sh), or give --data\n",
        models::kProseDirectory));
  }
  job.run([&](Job& rank) { return GptRun(&rank, flags).Run(); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
