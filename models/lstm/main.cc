// Trains an LSTM on text, byte by byte or in the tokens of a tokenizer; prints its loss on unseen
// text, and a text that is generated token by token from its state.
//   bazel run -c opt //models/lstm -- --ranks 2 --zero 2

#include <fmt/format.h>

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

// The logits after one token, and the states of all layers side by side, which are fed with the
// next.
Outputs Continue(models::LstmLanguage& model, const models::LstmConfig& config, Inputs& in) {
  const Shape states = {1, config.layers * config.hidden};
  nn::RecurrentState state;
  state.h = chunk(in.f32("h", states, Sbp::B()), config.layers, 1);
  state.c = chunk(in.f32("c", states, Sbp::B()), config.layers, 1);
  const Var logits = model(in.i64("token", {1, 1}, Sbp::B()), &state);
  return {{"logits", logits}, {"h", concat(state.h, 1)}, {"c", concat(state.c, 1)}};
}

class LstmRun {
 public:
  LstmRun(Job* job, const Flags& flags) : job_(*job), flags_(flags), config_(flags.config) {}

  Status Run() {
    ZG_ASSIGN_OR_RETURN(const models::Text text,
                        models::Text::Open(flags_.text, /*vocabulary=*/0, flags_.context));
    config_.vocabulary = text.vocabulary();
    ZG_ASSIGN_OR_RETURN(
        models::TextWindows windows,
        models::TextWindows::Create(job_, text.tokens(), flags_.context, flags_.text.eval_windows));
    ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> prompt,
                        text.Prompt(flags_.sample, kPromptTokens));

    models::LstmLanguage model(config_);
    Graph graph("lstm");
    const int64_t batch = job_.options().batch;
    const Shape shape = {batch, flags_.context};
    const auto loss = [&](Inputs& in) {
      return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
    };
    graph.train(optim::AdamW{.lr = flags_.lr, .weight_decay = flags_.weight_decay}, loss);
    graph.eval("validate", loss);
    graph.eval("continue", [&](Inputs& in) { return Continue(model, config_, in); });

    TrainOptions options;
    options.description =
        fmt::format("lstm: {} layers, {} channels, context {}, vocabulary {}", config_.layers,
                    config_.hidden, flags_.context, config_.vocabulary);
    options.samples_per_micro_batch = batch;
    options.tokens_per_micro_batch = shape.num_elements();
    Training training = train(job_, graph, options);
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
    Print(lines);
    if (flags_.sample.tokens == 0) return Status::Ok();
    ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> sample, Sample(trainer, prompt));
    Print(text.Continuation(flags_.sample, sample));
    return Status::Ok();
  }

 private:
  // Reads the prompt, then continues with its own samples.
  StatusOr<std::vector<int64_t>> Sample(Trainer& trainer, const std::vector<int64_t>& prompt) {
    const auto seed = static_cast<uint64_t>(job_.options().seed);
    ZG_ASSIGN_OR_RETURN(const Sampler sampler,
                        Sampler::create(models::OptionsOf(flags_.sample, seed).sampler));
    const auto num_read = static_cast<int64_t>(prompt.size());
    std::vector<float> h(config_.layers * config_.hidden), c(h.size());
    std::vector<int64_t> sample, token = {prompt[0]};
    for (int64_t i = 1; i < num_read + flags_.sample.tokens; ++i) {
      ZG_RETURN_IF_ERROR(trainer.eval("continue", {{"token", token}, {"h", h}, {"c", c}}));
      ZG_ASSIGN_OR_RETURN(h, trainer.result("continue", "h"));
      ZG_ASSIGN_OR_RETURN(c, trainer.result("continue", "c"));
      ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, trainer.result("continue", "logits"));
      if (i < num_read) {
        token[0] = prompt[i];
        continue;
      }
      ZG_ASSIGN_OR_RETURN(token[0], sampler.draw(logits, i));
      sample.push_back(token[0]);
    }
    return sample;
  }

  void Print(const std::string& text) const {
    if (job_.is_main()) print_out(text);
  }

  Job& job_;
  Flags flags_;
  models::LstmConfig config_;
};

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
  job.run([&](Job& rank) { return LstmRun(&rank, flags).Run(); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
