// Times text generation: milliseconds per token at several positions, with caches, and without
// them, when the whole text is computed again.
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

Status Run(Job& job, const Flags& flags) {
  const models::GptConfig& config = models::FindGptPreset(flags.preset)->config;
  models::Gpt model(config);
  Graph graph("generation");
  Generator generator(graph, {.context = config.context},
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
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser("Times the generation of text.");
  parser.section("Model");
  parser.add_choice("preset", &flags.preset, {"mini", "gpt2"}, "sizes of a known GPT");
  parser.add_int("repetitions", &flags.repetitions, at_least(1), "of each measurement");
  Job job = Job::start(argc, argv, parser, JobOptions());
  job.run([&](Job& rank) { return Run(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
