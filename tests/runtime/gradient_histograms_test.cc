// Histograms of gradients: they cover the gradients that parameters were updated with, and are the
// same at every stage and on any number of ranks.

#include "framework/runtime/gradient_histograms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

struct TwoSteps {
  std::map<std::string, ValueHistogram> histograms;  // of step 2, over all ranks
  NamedValues before;                                // the parameters of step 1, on rank 0
  NamedValues after;                                 // and of step 2
};

struct Setting {
  int num_ranks = 1;
  int stage = 0;
  std::vector<MeshAxis> mesh = {};
  DType dtype = DType::kF32;
};

struct TwoLayers : nn::Module {
  nn::Linear hidden{this, "hidden", 6, 40};
  nn::Linear output{this, "output", 40, 5};
  Var forward(Var x) override { return output(relu(hidden(x))); }
};

// SGD with a learning rate of 1/4: a gradient is four times the change of its parameter.
TwoSteps RunTwoSteps(const Setting& setting, int64_t every = 2) {
  RegisterAllOps();
  std::vector<TwoSteps> by_rank(setting.num_ranks);
  const Status status = RunRanks(setting.num_ranks, [&](Communicator& communicator) -> Status {
    TwoSteps& run = by_rank[communicator.rank()];
    TwoLayers model;
    Graph graph("two_layers");
    graph.train(optim::Sgd{0.25}, [&](Inputs& in) {
      return mse_loss(model(in.f32("x", {3, 6})), in.f32("y", {3, 5}));
    });
    graph.config().enable_zero({.stage = setting.stage, .bucket_bytes = 512});
    graph.config().mesh = setting.mesh;
    graph.config().micro_batches = 4;
    graph.config().dtype = setting.dtype;
    TrainerOptions options;
    options.gradient_histograms_every = every;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                        make_trainer(graph, communicator, options));
    std::vector<float> x(3 * 6), y(3 * 5);
    for (int step = 1; step <= 2; ++step) {
      ZG_ASSIGN_OR_RETURN(run.before, trainer->consolidate_parameters());
      const StatusOr<float> loss = trainer->step([&](int64_t micro_batch) {
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<float>((i * 7 + micro_batch) % 5) - 2;
        }
        for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 3) - 1;
        return trainer->feed({{"x", x}, {"y", y}});
      });
      ZG_RETURN_IF_ERROR(loss.status());
    }
    ZG_ASSIGN_OR_RETURN(run.after, trainer->consolidate_parameters());
    run.histograms = trainer->executor().gradient_histograms()->Take();
    EXPECT_TRUE(trainer->executor().gradient_histograms()->Take().empty());
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  for (size_t rank = 1; rank < by_rank.size(); ++rank) {
    for (const auto& [name, histogram] : by_rank[rank].histograms) {
      by_rank[0].histograms[name].Merge(histogram);
    }
  }
  return by_rank[0];
}

std::string Text(const std::map<std::string, ValueHistogram>& histograms) {
  std::string text;
  for (const auto& [name, histogram] : histograms) {
    text += name + ":";
    for (const ValueHistogram::Bucket& bucket : histogram.buckets()) {
      text += fmt::format(" {}..{} {},", bucket.begin, bucket.end, bucket.count);
    }
    text += "\n";
  }
  return text;
}

TEST(GradientHistograms, AreOfWhatParametersWereUpdatedWith) {
  const TwoSteps run = RunTwoSteps({});
  ASSERT_EQ(run.histograms.size(), 4u);
  for (const auto& [name, histogram] : run.histograms) {
    const std::vector<float>& before = run.before.at(name).values;
    const std::vector<float>& after = run.after.at(name).values;
    double sum = 0, least = 1e30, most = -1e30;
    for (size_t i = 0; i < before.size(); ++i) {
      const double gradient = 4 * (static_cast<double>(before[i]) - static_cast<double>(after[i]));
      sum += gradient;
      least = std::min(least, gradient);
      most = std::max(most, gradient);
    }
    EXPECT_EQ(histogram.num(), static_cast<int64_t>(before.size())) << name;
    EXPECT_NEAR(histogram.sum(), sum, 1e-5) << name;
    EXPECT_NEAR(histogram.min(), least, 1e-6) << name;
    EXPECT_NEAR(histogram.max(), most, 1e-6) << name;
    EXPECT_GT(most, least) << name;
  }
}

TEST(GradientHistograms, AreTheSameAtEveryStageAndNumberOfRanks) {
  const TwoSteps alone = RunTwoSteps({});
  for (const int num_ranks : {1, 2, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      EXPECT_EQ(Text(RunTwoSteps({num_ranks, stage}).histograms), Text(alone.histograms))
          << num_ranks << " ranks, stage " << stage;
    }
  }
  const Setting hybrid = {4, 3, {{"replica", 2}, {"shard", 2}}};
  EXPECT_EQ(Text(RunTwoSteps(hybrid).histograms), Text(alone.histograms));
}

TEST(GradientHistograms, MixedPrecisionCountsEveryElementOnce) {
  for (const int num_ranks : {1, 2}) {
    const TwoSteps run = RunTwoSteps({num_ranks, 2, {}, DType::kBF16});
    ASSERT_EQ(run.histograms.size(), 4u);
    for (const auto& [name, histogram] : run.histograms) {
      EXPECT_EQ(histogram.num(), static_cast<int64_t>(run.before.at(name).values.size())) << name;
    }
  }
}

TEST(GradientHistograms, OtherStepsAreNotCounted) {
  EXPECT_TRUE(RunTwoSteps({}, /*every=*/3).histograms.empty());
}

}  // namespace
}  // namespace zg
