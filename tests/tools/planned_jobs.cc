#include "tests/tools/planned_jobs.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "framework/comm/in_process.h"
#include "models/gpt/presets.h"
#include "tests/testing/as_planned.h"
#include "tools/plan/model_graph.h"
#include "tools/plan/planned_model.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::plan {
namespace {

Status RunOnRank(const PlanOptions& options, const JobPlan& plan, Communicator& communicator) {
  Graph graph(options.model);
  ZG_RETURN_IF_ERROR(TraceModel(options, &graph));
  TrainerOptions trainer_options;
  trainer_options.threads = options.threads;
  ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, trainer_options));
  const std::vector<int64_t> tokens(options.batch * options.context, 3);
  ZG_RETURN_IF_ERROR(
      trainer->step([&](int64_t) {
               return trainer->feed({{"x", tokens}, {"y", tokens}});
             })
          .status());
  if (communicator.rank() != 0) return Status::Ok();
  EXPECT_EQ(plan.category_bytes, trainer->executor().meter().category_bytes());
  EXPECT_EQ(plan.peak_bytes, trainer->executor().meter().peak_bytes());
  testing::ExpectTraffic(plan.traffic, 1, communicator.traffic());
  return Status::Ok();
}

}  // namespace

PlanOptions GptOf(const GptSizes& sizes) {
  PlanOptions options;
  options.layers = sizes.layers;
  options.heads = sizes.heads;
  options.channels = sizes.channels;
  options.context = sizes.context;
  options.vocabulary = sizes.vocabulary;
  options.batch = sizes.batch;
  options.compile.micro_batches = 1;
  return options;
}

PlanOptions TinyGpt() {
  PlanOptions options = GptOf({2, 2, 24, 12, 29, 2});
  options.compile.zero.bucket_bytes = 4 << 10;
  return options;
}

PlanOptions GptPreset(std::string_view name) {
  const models::GptConfig& config = models::FindGptPreset(name)->config;
  return GptOf(
      {config.layers, config.heads, config.channels, config.context, config.vocabulary, 1});
}

PlanOptions OnRanks(PlanOptions options, int ranks, int stage) {
  options.ranks = ranks;
  options.compile.zero.stage = stage;
  options.compile.micro_batches = ranks;
  return options;
}

JobPlan PlanOrDie(const PlanOptions& options) {
  StatusOr<JobPlan> plan = PlanModel(options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? std::move(plan).value() : JobPlan();
}

void ExpectRunsAsPlanned(const PlanOptions& options, const JobPlan& plan) {
  const Status status = RunRanks(options.ranks, [&](Communicator& communicator) {
    return RunOnRank(options, plan, communicator);
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace zg::plan
