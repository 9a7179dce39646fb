// OneFlow's worked example of ZeRO: trains Linear, ReLU, Linear on random data, then predicts with
// the trained parameters, which may be split over the ranks. The model does not depend on that.
//   bazel run -c opt //models/classifier -- --ranks 2 --zero 3

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "framework/base/random.h"
#include "models/classifier/model.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

// Points around one random center per class, a function of (seed, step, micro-batch).
class ClusteredData {
 public:
  ClusteredData(const models::ClassifierConfig& config, int64_t batch, uint64_t seed)
      : config_(config),
        seed_(seed),
        x_(batch * config.inputs),
        y_(batch),
        centers_(config.classes * config.inputs) {
    FillNormal(FoldIn(RandomKey{seed}, "centers"), 0, centers_.size(), 0.0f, 1.0f, centers_.data());
  }

  void Fill(int64_t step, int64_t micro_batch) {
    const RandomKey key = FoldIn(FoldIn(RandomKey{seed_}, step), micro_batch);
    FillNormal(FoldIn(key, "x"), 0, x_.size(), 0.0f, 2.0f, x_.data());
    for (size_t row = 0; row < y_.size(); ++row) {
      y_[row] = static_cast<int64_t>(UniformBelow(FoldIn(key, "y"), row, config_.classes));
      for (int64_t i = 0; i < config_.inputs; ++i) {
        x_[row * config_.inputs + i] += centers_[y_[row] * config_.inputs + i];
      }
    }
  }
  const std::vector<float>& x() const { return x_; }
  const std::vector<int64_t>& y() const { return y_; }

 private:
  models::ClassifierConfig config_;
  uint64_t seed_;
  std::vector<float> x_;
  std::vector<int64_t> y_;
  std::vector<float> centers_;
};

// The share of this rank's rows whose largest logit is that of their class.
double Accuracy(const std::vector<float>& logits, const std::vector<int64_t>& labels, int rank,
                int64_t classes) {
  const float* row = logits.data() + rank * static_cast<int64_t>(labels.size()) * classes;
  int64_t hits = 0;
  for (int64_t label : labels) {
    hits += std::max_element(row, row + classes) - row == label ? 1 : 0;
    row += classes;
  }
  return static_cast<double>(hits) / static_cast<double>(labels.size());
}

Status TrainAndPredict(Job& job, double lr) {
  const models::ClassifierConfig config;
  models::Classifier model(config);
  Graph graph("classifier");
  const int64_t batch = job.options().batch;
  graph.train(optim::Sgd{lr}, [&](Inputs& in) {
    return cross_entropy(model(in.f32("x", {batch, config.inputs})), in.i64("y", {batch}));
  });
  graph.eval("predict", [&](Inputs& in) { return model(in.f32("x", {batch, config.inputs})); });

  ClusteredData data(config, batch, job.options().seed);
  TrainOptions options;
  options.samples_per_micro_batch = batch;
  Training training = train(job, graph, options);
  while (training.next()) {
    training.step([&](int64_t micro_batch) {
      data.Fill(training.step_number(), micro_batch);
      return training.trainer().feed({{"x", data.x()}, {"y", data.y()}});
    });
  }

  data.Fill(/*step=*/0, job.data_rank());  // no training step has number 0
  ZG_RETURN_IF_ERROR(training.trainer().eval("predict", {{"x", data.x()}}));
  ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, training.trainer().result("predict"));
  if (!job.is_main()) return Status::Ok();
  const double accuracy = Accuracy(logits, data.y(), job.data_rank(), config.classes);
  training.log("accuracy", accuracy);
  print_out(fmt::format("  prediction  {:.1f} % of {} new samples right\n", 100 * accuracy, batch));
  return Status::Ok();
}

int Main(int argc, char** argv) {
  double lr = 1e-3;
  FlagParser parser("Trains a small classifier on random clusters, then predicts with it.");
  parser.section("Model");
  parser.add_double("lr", &lr, at_least(0), "learning rate of SGD");
  JobOptions defaults;
  defaults.steps = 100;
  defaults.batch = 128;
  Job job = Job::start(argc, argv, parser, defaults);
  job.run([&](Job& rank) { return TrainAndPredict(rank, lr); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
