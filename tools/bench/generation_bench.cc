// Times text generation: milliseconds per token at several positions, with caches, without them, when
// the whole text is computed again, and of several texts at once.
//   bazel run -c opt //tools/bench:generation_bench -- --preset gpt2
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/median.h"
#include "framework/base/stopwatch.h"
#include "models/gpt/presets.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

struct Flags {
  std::string preset = "mini";
  int64_t repetitions = 9;
  int64_t texts = 8;
};

StatusOr<double> MedianMs(int64_t repetitions, const std::function<Status()>& run) {
  std::vector<double> times;
  ZG_RETURN_IF_ERROR(run());
  for (int64_t i = 0; i < repetitions; ++i) {
    const Stopwatch stopwatch;
    ZG_RETURN_IF_ERROR(run());
    times.push_back(stopwatch.ms());
  }
  return Median(std::move(times));
}

// How long a token of each text takes, from the second one on.
StatusOr<double> MsOfTexts(Trainer& trainer, Generator& generator, int64_t num_texts) {
  constexpr int64_t kTokens = 33;
  const std::vector<std::vector<int64_t>> prompts(num_texts, std::vector<int64_t>(16, 7));
  const auto median = [&](int64_t max_tokens) {
    GenerateOptions options;
    options.max_tokens = max_tokens;
    return MedianMs(3, [=, &trainer, &generator] {
      return generator.generate_all(trainer, prompts, options).status();
    });
  };
  ZG_ASSIGN_OR_RETURN(const double first, median(1));
  ZG_ASSIGN_OR_RETURN(const double all, median(kTokens));
  return (all - first) / (kTokens - 1);
}

Status Run(Job& job, const Flags& flags) {
  const models::GptConfig& config = models::FindGptPreset(flags.preset)->config;
  models::Gpt model(config);
  Graph graph("generation");
  Generator generator(graph, {.context = config.context},
                      [&](Var tokens) { return model(tokens); });
  Generator of_texts(graph, {.context = config.context, .name = "texts", .texts = flags.texts},
                     [&](Var tokens) { return model(tokens); });
  graph.eval("whole", [&](Inputs& in) {
    return model(in.i64("x", {1, config.context}, Sbp::B()));
  });
  const std::unique_ptr<Trainer> trainer = make_trainer(job, graph);
  std::vector<int64_t> text(config.context);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int64_t>(i * 7 % 251);
  const auto print = [&](const std::string& line) {
    if (job.is_main()) print_out(line);
  };
  print(fmt::format("{}: {} parameters, context {}\n", flags.preset, graph.num_parameters(),
                    config.context));
  for (const int64_t size : {int64_t{16}, config.context / 4, config.context / 2, config.context}) {
    const std::vector<int64_t> part(text.begin(), text.begin() + size);
    ZG_RETURN_IF_ERROR(generator.logits(*trainer, part).status());
    // Computes the last token of an existing text again.
    ZG_ASSIGN_OR_RETURN(const double ms, MedianMs(flags.repetitions, [&] {
                          return generator.logits(*trainer, part).status();
                        }));
    print(fmt::format("  token {:5}    {:9.3f} ms\n", size, ms));
  }
  ZG_ASSIGN_OR_RETURN(const double prefill, MedianMs(3, [&] {
                        generator.reset();
                        return generator.logits(*trainer, text).status();
                      }));
  print(fmt::format("  prompt of {:5} tokens {:.3f} ms\n", config.context, prefill));
  ZG_ASSIGN_OR_RETURN(const double whole, MedianMs(3, [&] {
                        return trainer->eval("whole", {{"x", text}});
                      }));
  print(fmt::format("  without caches {:.3f} ms per token\n", whole));
  ZG_ASSIGN_OR_RETURN(const double ms, MsOfTexts(*trainer, of_texts, flags.texts));
  print(fmt::format("  {} texts at once {:.3f} ms for a token of each\n", flags.texts, ms));
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser("Times the generation of text.");
  parser.section("Model");
  parser.add_choice("preset", &flags.preset, {"mini", "gpt2"}, "sizes of a known GPT");
  parser.add_int("repetitions", &flags.repetitions, at_least(1), "of each measurement");
  parser.add_int("texts", &flags.texts, at_least(1), "that are generated at once");
  Job job = Job::start(argc, argv, parser, JobOptions());
  job.run([&](Job& rank) { return Run(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
