// Compares the output of tools/plan for a job with running it.

#include "framework/plan/job_plan.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "framework/ir/parser.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/assign_offsets.h"
#include "framework/plan/stage_comparison.h"
#include "models/gpt/presets.h"
#include "tests/tools/planned_jobs.h"
#include "tools/plan/model_graph.h"
#include "tools/plan/planned_model.h"
#include "zero/memory_model.h"

namespace zg::plan {
namespace {

TEST(JobPlan, IsWhatARunMeasures) {
  ShareSmallWork(true);
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      for (const int64_t shard_min_elements : {0, 100}) {
        SCOPED_TRACE(fmt::format("{} ranks, stage {}, {}", ranks, stage, shard_min_elements));
        PlanOptions options = OnRanks(TinyGpt(), ranks, stage);
        options.compile.micro_batches = 2 * ranks;
        options.threads = 1 + stage % 3;
        options.compile.zero.shard_min_elements = shard_min_elements;
        const JobPlan plan = PlanOrDie(options);
        ExpectRunsAsPlanned(options, plan);
      }
    }
  }
  ShareSmallWork(false);
}

TEST(JobPlan, ThePeakIsTheSumOfWhatIsAliveThen) {
  const JobPlan plan = PlanOrDie(OnRanks(TinyGpt(), 2, 3));
  ASSERT_GE(plan.peak, 0);
  const ScheduledNode& node = plan.schedule[plan.peak];
  int64_t sum = 0;
  for (const PlannedBuffer& buffer : plan.peak_alive) sum += buffer.bytes;
  EXPECT_EQ(sum, node.alive_bytes);
  EXPECT_TRUE(std::is_sorted(
      plan.peak_alive.begin(), plan.peak_alive.end(),
      [](const PlannedBuffer& a, const PlannedBuffer& b) { return a.bytes > b.bytes; }));
  for (const ScheduledNode& other : plan.schedule) {
    EXPECT_LE(other.alive_bytes, node.alive_bytes);
  }
  // Apart from alignment, no plan can be smaller.
  EXPECT_GE(plan.lower_bound_bytes, sum);
  EXPECT_LE(plan.lower_bound_bytes,
            sum + static_cast<int64_t>(plan.peak_alive.size()) * kBufferAlignmentBytes);
  CategoryBytes most = {};
  for (const ScheduledNode& other : plan.schedule) {
    for (int i = 0; i < kNumMemoryCategories; ++i) most[i] = std::max(most[i], other.alive[i]);
  }
  EXPECT_EQ(most, plan.category_bytes);
}

// The activations that forward keeps for backward: with recomputation a block's input, (B, T, C) in
// f32, and little else.
TEST(JobPlan, CountsWhatIsKeptForBackward) {
  PlanOptions options = TinyGpt();
  const JobPlan all = PlanOrDie(options);
  options.compile.recompute = {"blocks.*"};
  const JobPlan inputs = PlanOrDie(options);
  const int64_t stream = options.batch * options.context * options.channels * 4;
  EXPECT_LE(all.kept_bytes, all.category_bytes[static_cast<int>(MemoryCategory::kActivations)]);
  EXPECT_GT(all.kept_bytes, 5 * options.layers * stream);
  EXPECT_GE(inputs.kept_bytes, (options.layers + 2) * stream);  // and of the last norm and the head
  options.layers += 3;
  EXPECT_EQ(PlanOrDie(options).kept_bytes - inputs.kept_bytes, 3 * stream);
}

TEST(JobPlan, MessagesNeedABuffer) {
  PlanOptions options = OnRanks(TinyGpt(), 3, 0);
  const int64_t shared = PlanOrDie(options).peak_bytes;
  options.comm = "messages";
  options.compile.overlap_bytes = 0;
  EXPECT_EQ(PlanOrDie(options).peak_bytes - shared, 2 * 8 * (60 << 10));
  options = OnRanks(TinyGpt(), 1, 0);
  options.comm = "messages";
  EXPECT_EQ(PlanOrDie(options).peak_bytes, PlanOrDie(TinyGpt()).peak_bytes);
}

TEST(JobPlan, EarlyUpdatesFreeGradients) {
  PlanOptions options;
  options.model = "recipe";
  options.layers = 8;
  options.width = 256;
  options.compile.zero.bucket_bytes = 256 << 10;
  options = OnRanks(options, 2, 1);
  const JobPlan late = PlanOrDie(options);
  options.compile.update_early = true;
  const JobPlan early = PlanOrDie(options);
  const int gradients = static_cast<int>(MemoryCategory::kGradients);
  EXPECT_LT(4 * early.category_bytes[gradients], late.category_bytes[gradients]);
  EXPECT_LT(early.peak_bytes, late.peak_bytes);
  EXPECT_EQ(early.sent_bytes, late.sent_bytes);
}

TEST(JobPlan, SkippingTakesANormAndACounter) {
  PlanOptions options = OnRanks(TinyGpt(), 2, 2);
  const JobPlan stop = PlanOrDie(options);
  options.compile.on_non_finite = OnNonFinite::kSkip;
  const JobPlan skip = PlanOrDie(options);
  EXPECT_GT(skip.sent_bytes, stop.sent_bytes);
  const int state = static_cast<int>(MemoryCategory::kOptimizerState);
  EXPECT_GT(skip.category_bytes[state], stop.category_bytes[state]);
  options.compile.on_non_finite = OnNonFinite::kIgnore;
  EXPECT_EQ(PlanOrDie(options).peak_bytes, stop.peak_bytes);
}

TEST(JobPlan, TheScheduleIsTheStep) {
  const JobPlan plan = PlanOrDie(TinyGpt());
  std::vector<std::string> sections;
  for (const ScheduledNode& node : plan.schedule) {
    if (sections.empty() || sections.back() != node.section) sections.push_back(node.section);
  }
  EXPECT_EQ(sections, (std::vector<std::string>{"forward", "backward", "update"}));
  EXPECT_TRUE(std::any_of(plan.schedule.begin(), plan.schedule.end(), [](const auto& node) {
    return node.scope == "blocks.1.attention.qkv" && node.op == "linear";
  }));
}

TEST(JobPlan, WhatStaysWholeAndWhy) {
  EXPECT_TRUE(PlanOrDie(TinyGpt()).replicated.empty());  // one rank
  EXPECT_TRUE(PlanOrDie(OnRanks(TinyGpt(), 2, 3)).replicated.empty());

  const JobPlan stage1 = PlanOrDie(OnRanks(TinyGpt(), 2, 1));
  ASSERT_EQ(stage1.replicated.size(), 2u);
  EXPECT_EQ(stage1.replicated[0].category, MemoryCategory::kParameters);
  EXPECT_EQ(stage1.replicated[0].reason, "stage 1 keeps them whole; stage 3 shards them");
  EXPECT_EQ(stage1.replicated[0].bytes,
            stage1.category_bytes[static_cast<int>(MemoryCategory::kParameters)]);
  EXPECT_EQ(stage1.replicated[1].category, MemoryCategory::kGradients);
  EXPECT_EQ(stage1.replicated[1].reason, "stage 1 keeps them whole; stage 2 shards them");

  PlanOptions options = OnRanks(TinyGpt(), 2, 3);
  options.compile.zero.shard_min_elements = 25;
  const JobPlan stage3 = PlanOrDie(options);
  ASSERT_EQ(stage3.replicated.size(), 3u);
  EXPECT_EQ(stage3.replicated[0].reason, "fewer than 25 elements");
  // Norms, and the biases of layers with 24 outputs.
  EXPECT_EQ(stage3.replicated[0].tensors.size(), 2u * (4 + 2) + 2);
  EXPECT_EQ(stage3.replicated[0].tensors.front(), "blocks.0.norm1.weight");
  EXPECT_EQ(stage3.replicated[2].category, MemoryCategory::kOptimizerState);
  EXPECT_EQ(stage3.replicated[2].tensors.size(), 2 * stage3.replicated[0].tensors.size());
}

// Each of 64 ranks owns as much as any other, in bytes and in operations, and sends as much as with
// AdamW, except that buckets of other tensors end elsewhere.
TEST(JobPlan, MuonOfGpt2XlIsBalancedOn64Ranks) {
  for (const int stage : {1, 2, 3}) {
    SCOPED_TRACE(stage);
    PlanOptions options = OnRanks(GptPreset("gpt2-xl"), 64, stage);
    const JobPlan adamw = PlanOrDie(options);
    EXPECT_EQ(adamw.owned.tensors, 0);
    options.optimizer = "muon";
    const JobPlan muon = PlanOrDie(options);
    EXPECT_EQ(muon.owned.tensors, 4 * 48);
    EXPECT_EQ(muon.owned.bytes_imbalance, 1.0);
    EXPECT_EQ(muon.owned.flops_imbalance, 1.0);
    const double sent =
        static_cast<double>(muon.sent_bytes) / static_cast<double>(adamw.sent_bytes);
    EXPECT_NEAR(sent, 1.0, 1e-4);
    const int state = static_cast<int>(MemoryCategory::kOptimizerState);
    EXPECT_LT(muon.category_bytes[state], 0.56 * static_cast<double>(adamw.category_bytes[state]));
  }
}

TEST(JobPlan, ErrorsOfTheModelArePassedOn) {
  PlanOptions options = TinyGpt();
  options.heads = 5;
  EXPECT_FALSE(PlanModel(options).ok());
  options = TinyGpt();
  options.model = "resnet";
  EXPECT_EQ(PlanModel(options).status().message(),
            "--model: got 'resnet', expected gpt, llama, recipe or classifier");
}

TEST(JobPlan, OtherModels) {
  PlanOptions options;
  options.model = "recipe";
  options.layers = 20;
  options.width = 2000;
  options.batch = 20;
  options = OnRanks(options, 2, 2);
  const JobPlan recipe = PlanOrDie(options);
  EXPECT_EQ(recipe.num_parameters, 20 * (2000 * 2000 + 2000));
  const int64_t gradients = recipe.category_bytes[static_cast<int>(MemoryCategory::kGradients)];
  EXPECT_GE(gradients, recipe.num_parameters * 4 / 2);
  EXPECT_LE(gradients, recipe.num_parameters * 4 / 2 + 20 * 2 * 64);  // padding
  options.model = "classifier";
  EXPECT_EQ(PlanOrDie(options).num_parameters, 256 * 128 + 128 + 128 * 10 + 10);
}

TEST(EstimateTime, AlphaBeta) {
  Machine machine;
  machine.gflops = 50;
  machine.bandwidth_gb_s = 2;
  machine.latency_us = 100;
  machine.host_bandwidth_gb_s = 0.5;
  machine.kernel_us = 20;
  const TimeEstimate time = EstimateTime(
      {{"data", 15, 4'000'000, 1'000'000}, {"data,shard", 6, 2'000'000, 0}}, {1e9, 50}, machine);
  EXPECT_DOUBLE_EQ(time.compute_ms, 20);
  EXPECT_DOUBLE_EQ(time.transfer_ms, 2.5);
  EXPECT_DOUBLE_EQ(time.host_transfer_ms, 2);
  EXPECT_DOUBLE_EQ(time.latency_ms, (5 + 2) * 3 * 0.1);
  EXPECT_DOUBLE_EQ(time.start_ms, 50 * 0.02);
  EXPECT_DOUBLE_EQ(time.step_ms(), 20 + 2.5 + 2 + 2.1 + 1);
}

TEST(JobPlan, BetweenHostsTransfersAreStartedAhead) {
  PlanOptions options = OnRanks(TinyGpt(), 3, 3);
  EXPECT_EQ(PlanOrDie(options).time.hidden_ms, 0);
  options.comm = "messages";
  EXPECT_GT(PlanOrDie(options).time.hidden_ms, 0);
}

TEST(JobPlan, QueuesShowWhenNodesRun) {
  PlanOptions options = OnRanks(TinyGpt(), 3, 3);
  options.compile.micro_batches = 6;
  for (const char* comm : {"shared", "messages"}) {
    options.comm = comm;
    const JobPlan plan = PlanOrDie(options);
    double computing_ms = 0, sending_ms = 0, done_ms = 0;
    for (const QueueSlice& slice : plan.computing) {
      EXPECT_GE(slice.begin_ms, done_ms);
      EXPECT_LT(slice.node, plan.schedule.size());
      computing_ms += slice.end_ms - slice.begin_ms;
      done_ms = slice.end_ms;
    }
    for (const QueueSlice& slice : plan.sending) sending_ms += slice.end_ms - slice.begin_ms;
    // One of a rank's two micro-batches is shown, and the update.
    EXPECT_GT(computing_ms, (plan.time.compute_ms + plan.time.start_ms) / 2);
    EXPECT_LT(computing_ms, plan.time.compute_ms + plan.time.start_ms);
    const bool is_hidden = plan.time.hidden_ms > 0;
    EXPECT_EQ(is_hidden, options.comm == "messages");
    // The computation waits for the transfer, or not always.
    if (is_hidden) {
      EXPECT_LT(done_ms, computing_ms + sending_ms);
    } else {
      EXPECT_NEAR(done_ms, computing_ms + sending_ms, 1e-6 * done_ms);
    }
  }
}

TEST(CompareStages, WarnsWhereABucketInFlightOutweighsWhatIsSaved) {
  PlanOptions options;
  options.model = "recipe";
  options.layers = 4;
  options.width = 256;
  options = OnRanks(options, 2, 2);
  const StatusOr<PlanReport> report = PlanModel(options, /*compare_stages=*/true);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const std::optional<StageComparison>& stages = report->stages;
  ASSERT_TRUE(stages.has_value());
  ASSERT_EQ(stages->plans.size(), 4u);
  for (int stage = 0; stage <= 3; ++stage) {
    EXPECT_EQ(stages->plans[stage].options.zero.stage, stage);
  }
  ASSERT_GT(stages->plans[2].peak_bytes, stages->plans[1].peak_bytes);
  ASSERT_EQ(stages->warnings.size(), 2u);
  EXPECT_EQ(stages->warnings[1],
            "stage 3 needs 526.3 KB more than stage 1: its peak holds %bucket0.all_gather_1 "
            "(communication, 1.1 MB), which that of stage 1 does not; smaller buckets may help");

  options.compile.zero.bucket_bytes = 256 << 10;  // four buckets
  const StatusOr<PlanReport> small = PlanModel(options, /*compare_stages=*/true);
  ASSERT_TRUE(small.ok());
  EXPECT_TRUE(small->stages->warnings.empty());
}

TEST(GptPresets, HaveTheParametersThatTheirNamesSay) {
  const auto count = [](std::string_view name) {
    return static_cast<double>(models::NumGptParameters(models::FindGptPreset(name)->config));
  };
  EXPECT_EQ(count("gpt2"), 124439808);
  EXPECT_EQ(count("gpt2-xl"), 1557611200);
  EXPECT_NEAR(count("7.5b") / 7.5e9, 1, 0.005);
  EXPECT_NEAR(count("128b") / 128e9, 1, 0.005);
  EXPECT_NEAR(count("1t") / 1e12, 1, 0.005);
  EXPECT_EQ(models::FindGptPreset("8b"), nullptr);
}

TEST(GptPresets, TheFormulaCountsWhatTheModelHas) {
  for (const char* name : {"mini", "7.5b"}) {
    const PlanOptions options = GptPreset(name);
    Graph graph("gpt");
    ASSERT_TRUE(TraceModel(options, &graph).ok());
    EXPECT_EQ(graph.num_parameters(),
              models::NumGptParameters(models::FindGptPreset(name)->config));
  }
}

// In f32, so 4 + 4 + 8 bytes instead of the paper's 2 + 2 + 12.
TEST(GptPresets, TheGraphNeedsWhatThePapersFormulasSay) {
  const double num_parameters =
      static_cast<double>(models::NumGptParameters(models::FindGptPreset("7.5b")->config));
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(fmt::format("stage {}", stage));
    const JobPlan plan = PlanOrDie(OnRanks(GptPreset("7.5b"), 64, stage));
    const StatusOr<zero::ModelStateBytes> expected =
        zero::PredictModelStates({num_parameters, 64, stage, {4, 4, 8}});
    ASSERT_TRUE(expected.ok());
    const auto planned = [&](MemoryCategory category) {
      return static_cast<double>(plan.category_bytes[static_cast<int>(category)]);
    };
    // The only difference is the padding of the buckets.
    EXPECT_NEAR(planned(MemoryCategory::kParameters) / expected->parameters, 1, 1e-4);
    EXPECT_NEAR(planned(MemoryCategory::kGradients) / expected->gradients, 1, 1e-4);
    EXPECT_NEAR(planned(MemoryCategory::kOptimizerState) / expected->optimizer_state, 1, 1e-4);
  }
}

}  // namespace
}  // namespace zg::plan
