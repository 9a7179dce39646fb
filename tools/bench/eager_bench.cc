// Times a step of the small GPT in eager mode against the same step of a graph, in turns, on one
// rank.
//   bazel run -c opt //tools/bench:eager_bench
#include <fmt/format.h>

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

std::vector<int64_t> Tokens(int64_t count, int64_t first) {
  std::vector<int64_t> tokens(count);
  for (int64_t i = 0; i < count; ++i) tokens[i] = (i * i + first) * 7 % 251;
  return tokens;
}

Status Run(Job& job, const Flags& flags) {
  if (job.size() != 1) {
    return InvalidArgument("--ranks: got {}, expected 1: nothing that runs at once is distributed",
                           job.size());
  }
  const models::GptConfig& config = models::FindGptPreset(flags.preset)->config;
  const Shape shape = {job.options().batch, config.context};
  const std::vector<int64_t> x = Tokens(shape.num_elements(), 0);
  const std::vector<int64_t> y = Tokens(shape.num_elements(), 1);
  const optim::AdamW optimizer{3e-4};

  models::Gpt model(config);
  Graph graph("bench");
  graph.train(optimizer, [&](Inputs& in) {
    return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
  });
  const std::unique_ptr<Trainer> trainer = make_trainer(job, graph);

  EagerOptions options;
  options.training = true;
  options.threads = job.options().threads;
  Eager eager(options);
  models::Gpt same(config);
  const Tensor tokens = eager.i64(shape, x);
  const Tensor targets = eager.i64(shape, y);

  std::vector<double> graph_ms, eager_ms;
  for (int64_t i = -2; i < flags.repetitions; ++i) {  // two to warm up
    const Stopwatch of_graph;
    ZG_ASSIGN_OR_RETURN(const float graph_loss, trainer->step({{"x", x}, {"y", y}}));
    const double graph_time = of_graph.ms();
    const Stopwatch of_eager;
    const Tensor loss = cross_entropy(same(tokens), targets);
    loss.backward();
    eager.step(optimizer);
    const double eager_time = of_eager.ms();
    if (loss.item() != graph_loss) {
      return FailedPrecondition("step {}: the losses differ: graph {}, eager {}", i, graph_loss,
                                loss.item());
    }
    if (i < 0) continue;
    graph_ms.push_back(graph_time);
    eager_ms.push_back(eager_time);
  }
  print_out(fmt::format("{}, batch {} x {}: graph {:.1f} ms per step, eager {:.1f} ms: {:.2f} x\n",
                        flags.preset, shape.dim(0), shape.dim(1), Median(graph_ms),
                        Median(eager_ms), Median(eager_ms) / Median(graph_ms)));
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser("Times steps that run at once against those of a graph.");
  parser.section("Model");
  parser.add_choice("preset", &flags.preset, {"mini", "gpt2"}, "sizes of a known GPT");
  parser.add_int("repetitions", &flags.repetitions, at_least(1), "of each measurement");
  JobOptions defaults;
  defaults.batch = 8;
  Job job = Job::start(argc, argv, parser, defaults);
  job.run([&](Job& rank) { return Run(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
