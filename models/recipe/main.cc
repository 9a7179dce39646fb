// Trains the model of PyTorch's recipe for its ZeroRedundancyOptimizer: 20 x Linear(2000, 2000),
// Adam, random data.
//   bazel run -c opt //models/recipe -- --ranks 2 --zero 2
//   bazel run -c opt //models/recipe -- --ranks 2 --compare      stages 0 to 3 in one table

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "framework/base/format.h"
#include "framework/base/random.h"
#include "framework/job/summary.h"
#include "models/recipe/model.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

struct Flags {
  int64_t layers = 20;
  int64_t width = 2000;
  double lr = 0.01;
  bool compare = false;
};

// Inputs and targets: standard normal, a function of (seed, step, micro-batch).
class RandomData {
 public:
  RandomData(int64_t elements, uint64_t seed) : seed_(seed), x_(elements), y_(elements) {}

  void Fill(int64_t step, int64_t micro_batch) {
    const RandomKey key = FoldIn(FoldIn(RandomKey{seed_}, step), micro_batch);
    FillNormal(FoldIn(key, "x"), 0, x_.size(), 0.0f, 1.0f, x_.data());
    FillNormal(FoldIn(key, "y"), 0, y_.size(), 0.0f, 1.0f, y_.data());
  }
  const std::vector<float>& x() const { return x_; }
  const std::vector<float>& y() const { return y_; }

 private:
  uint64_t seed_;
  std::vector<float> x_;
  std::vector<float> y_;
};

// `stage` overrides the flag.
Report Train(Job& job, const Flags& flags, std::optional<int> stage) {
  models::Recipe model(flags.layers, flags.width);
  Graph graph("recipe");
  const Shape shape = {job.options().batch, flags.width};
  graph.train(optim::Adam{flags.lr},
              [&](Inputs& in) { return mse_loss(model(in.f32("x", shape)), in.f32("y", shape)); });
  graph.config() = job.options().compile;
  RandomData data(shape.num_elements(), job.options().seed);
  TrainOptions options;
  options.stage = stage;
  options.samples_per_micro_batch = job.options().batch;
  options.summarizes = !stage.has_value();
  options.description = fmt::format("recipe: {0} layers of {1} x {1}", flags.layers, flags.width);
  Training training = train(job, graph, options);
  while (training.next()) {
    training.step([&](int64_t micro_batch) {
      data.Fill(training.step_number(), micro_batch);
      return training.trainer().feed({{"x", data.x()}, {"y", data.y()}});
    });
  }
  return training.report();
}

std::string CompareTable(const std::vector<Report>& reports) {
  std::vector<std::vector<std::string>> rows = {{"stage"}};
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    rows[0].emplace_back(MemoryCategoryName(static_cast<MemoryCategory>(i)));
  }
  for (const char* title :
       {"peak", "sent per step", "ms per step", "parameter sum", "parameter sha256"}) {
    rows[0].emplace_back(title);
  }
  for (size_t stage = 0; stage < reports.size(); ++stage) {
    const Report& report = reports[stage];
    std::vector<std::string> row = {fmt::format("{}", stage)};
    for (int64_t bytes : report.measured_memory.category_bytes) row.push_back(FormatBytes(bytes));
    row.push_back(FormatBytes(report.measured_memory.peak_bytes));
    int64_t sent = 0;
    for (const Traffic& traffic : report.measured_traffic) sent += traffic.bytes;
    row.push_back(FormatBytes(sent));
    row.push_back(fmt::format("{:.1f}", report.speed.ms_per_step_median));
    row.push_back(fmt::format("{:.9g}", report.final_state.param_sum));
    row.push_back(report.final_state.param_sha256.substr(0, 12));
    rows.push_back(std::move(row));
  }
  return FormatTable(rows);
}

Status CompareStages(Job& job, const Flags& flags) {
  for (const auto& [flag, value] :
       {std::pair("--save", job.options().save), std::pair("--metrics", job.options().metrics),
        std::pair("--trace", job.options().trace)}) {
    if (value.empty()) continue;
    return InvalidArgument("{}: got {}, but --compare trains four times; leave one of them out",
                           flag, value);
  }
  std::vector<Report> reports;
  for (int stage = 0; stage <= 3; ++stage) {
    reports.push_back(Train(job, flags, stage));
    if (job.is_main()) print_out(fmt::format("\nstage {}\n{}", stage, Summary(reports.back())));
  }
  if (!job.is_main()) return Status::Ok();
  print_out("\n" + CompareTable(reports));
  return job.options().report.empty() ? Status::Ok()
                                      : WriteReport(job.options().report, reports.back());
}

Status Run(Job& job, const Flags& flags) {
  if (flags.compare) return CompareStages(job, flags);
  Train(job, flags, std::nullopt);
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser(
      "Trains a stack of equal Linear layers on random data, as PyTorch's ZeRO recipe does.");
  parser.section("Model");
  parser.add_int("layers", &flags.layers, between(1, 10000), "linear layers");
  parser.add_int("width", &flags.width, between(1, 1 << 20), "inputs and outputs of each");
  parser.add_double("lr", &flags.lr, at_least(0), "Adam's learning rate");
  parser.add_bool("compare", &flags.compare,
                  "train at stages 0, 1, 2 and 3 one after another and print one table");
  JobOptions defaults;
  defaults.steps = 10;
  defaults.batch = 20;
  // With the recipe's learning rate the loss on random data grows beyond f32 after a few steps. The
  // parameters stay finite, and the recipe's subject, memory and time, does not depend on it.
  defaults.compile.on_non_finite = OnNonFinite::kIgnore;
  Job job = Job::start(argc, argv, parser, defaults);
  job.run([&](Job& rank) { return Run(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
