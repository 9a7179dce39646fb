// The results of `plan --fit`, compared with the plans of all candidates, and with running some of
// them.

#include "tools/plan/fit.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/base/stopwatch.h"
#include "framework/ops/register_all_ops.h"
#include "models/llama/presets.h"
#include "tests/testing/tensor_rules.h"
#include "tests/tools/planned_jobs.h"
#include "tools/plan/fit_candidates.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

// Four ranks on two hosts.
PlanOptions Small(const std::string& model) {
  RegisterAllOps();
  PlanOptions options;
  options.model = model;
  options.layers = 4;
  options.heads = 2;
  options.channels = 24;
  options.context = 12;
  options.vocabulary = 30;
  options.llama = {.layers = 4,
                   .heads = 4,
                   .key_heads = 2,
                   .channels = 24,
                   .hidden = 40,
                   .context = 12,
                   .vocabulary = 30};
  options.ranks = 4;
  options.batch = 4;
  options.compile.micro_batches = 4;
  options.compile.zero.bucket_bytes = 4 << 10;
  options.machine.ranks_per_host = 2;
  options.machine.gflops = 0.5;
  options.machine.bandwidth_gb_s = 0.1;
  options.machine.host_bandwidth_gb_s = 0.01;
  options.compile.placement =
      model == "gpt" ? testing::GptTensorRules() : testing::LlamaTensorRules();
  return options;
}

PlanOptions GptXl() {
  RegisterAllOps();
  PlanOptions options = GptPreset("gpt2-xl");
  options.ranks = 64;
  options.batch = 4;
  options.compile.micro_batches = 64;
  options.compile.dtype = DType::kBF16;
  options.machine = {100, 10, 100'000, 5, 8, 12};
  return options;
}

FitFront FrontOrDie(const PlanOptions& options, int64_t budget_bytes) {
  StatusOr<FitFront> front = FindFront(options, budget_bytes);
  EXPECT_TRUE(front.ok()) << front.status().message();
  return front.ok() ? std::move(*front) : FitFront();
}

void ExpectFront(const FitFront& front, int64_t budget_bytes) {
  ASSERT_FALSE(front.points.empty());
  for (size_t i = 0; i < front.points.size(); ++i) {
    const JobPlan& plan = front.points[i].plan;
    EXPECT_LE(plan.peak_bytes, budget_bytes);
    if (i == 0) continue;
    EXPECT_GE(plan.time.step_ms(), front.points[i - 1].plan.time.step_ms());
    EXPECT_LT(plan.peak_bytes, front.points[i - 1].plan.peak_bytes);
  }
}

class FitTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, FitTest, ::testing::Values("gpt", "llama"),
                         [](const auto& info) { return info.param; });

// The search compiles a few dozen of several hundred candidates. No other is much better than its
// points.
TEST_P(FitTest, FindsNearlyTheFrontOfAllWays) {
  const PlanOptions options = Small(GetParam());
  constexpr int64_t kBudget = 1'000'000'000;
  const FitFront front = FrontOrDie(options, kBudget);
  ExpectFront(front, kBudget);
  EXPECT_LE(front.num_compiled, 20);
  EXPECT_GT(front.num_candidates, 5 * front.num_compiled);
  int num_compiled = 0;
  const std::vector<PlanOptions> candidates = FitCandidates(options);
  for (size_t i = 0; i < candidates.size(); i += 3) {  // a sample, to be faster
    const PlanOptions& candidate = candidates[i];
    const StatusOr<JobPlan> plan = PlanModel(candidate);
    if (!plan.ok()) continue;
    ++num_compiled;
    const bool is_reached =
        std::any_of(front.points.begin(), front.points.end(), [&](const FitPoint& point) {
          return static_cast<double>(point.plan.peak_bytes) <=
                     1.25 * static_cast<double>(plan->peak_bytes) &&
                 point.plan.time.step_ms() <= 1.05 * plan->time.step_ms();
        });
    EXPECT_TRUE(is_reached) << ChoicesAsFlags(candidate) << ": " << plan->peak_bytes << " bytes, "
                            << plan->time.step_ms() << " ms";
  }
  EXPECT_GT(num_compiled, 80);
}

TEST_P(FitTest, ItsPointsRunAsPlanned) {
  const FitFront front = FrontOrDie(Small(GetParam()), 1'000'000'000);
  ASSERT_GE(front.points.size(), 3u);
  for (const FitPoint& point : front.points) {
    SCOPED_TRACE(ChoicesAsFlags(point.options));
    ExpectRunsAsPlanned(point.options, point.plan);
  }
}

TEST(Fit, KeepsWhatIsGivenAndTheSamplesOfAStep) {
  PlanOptions options = Small("gpt");
  options.fit_choices = {false, false, false};
  options.compile.placement.clear();
  options.compile.zero.stage = 2;
  options.compile.recompute = {"blocks.*"};
  const FitFront front = FrontOrDie(options, 1'000'000'000);
  for (const FitPoint& point : front.points) {
    EXPECT_TRUE(point.options.compile.mesh.empty());
    EXPECT_EQ(point.options.compile.zero.stages_text(), "2");
    EXPECT_EQ(point.options.compile.recompute, std::vector<std::string>{"blocks.*"});
    EXPECT_EQ(point.options.batch * point.options.compile.micro_batches, 16);
  }
  options.compile.update_early = true;
  for (const PlanOptions& candidate : FitCandidates(options)) EXPECT_EQ(candidate.batch, 4);
}

TEST(Fit, LessMemoryTakesMoreTime) {
  const FitFront all = FrontOrDie(Small("gpt"), 1'000'000'000);
  ASSERT_GE(all.points.size(), 2u);
  const int64_t budget = all.points[0].plan.peak_bytes - 1;
  const FitFront less = FrontOrDie(Small("gpt"), budget);
  ExpectFront(less, budget);
  EXPECT_GE(less.points[0].plan.time.step_ms(), all.points[0].plan.time.step_ms());
}

TEST(Fit, SaysByHowMuchAndWhatWouldFit) {
  PlanOptions options = Small("gpt");
  options.ranks = 2;
  options.compile.micro_batches = 2;
  options.compile.placement.clear();
  const StatusOr<FitFront> none = FindFront(options, 100'000);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
  const std::string& message = none.status().message();
  EXPECT_NE(message.find("--fit: nothing fits into 100.0 KB: the least is "), std::string::npos)
      << message;
  EXPECT_NE(message.find(" too much; --fit 1M would do, or --ranks "), std::string::npos)
      << message;
  const StatusOr<FitFront> never = FindFront(options, 1000);
  ASSERT_FALSE(never.ok());
  EXPECT_NE(never.status().message().find("; up to 1024 ranks do not help"), std::string::npos)
      << never.status().message();
}

// The search takes a few seconds; a busy machine may need more.
TEST(Fit, Gpt2XlOn64Ranks) {
  constexpr int64_t kBudget = 32'000'000'000;
  const Stopwatch stopwatch;
  const FitFront front = FrontOrDie(GptXl(), kBudget);
  fmt::print("{:.1f} s\n{}", stopwatch.ms() / 1000, FrontText(front, kBudget));
  ExpectFront(front, kBudget);
  EXPECT_GE(front.points.size(), 5u);
  // From a setting that keeps most parameters whole to one that shards all blocks.
  EXPECT_GT(front.points.front().plan.peak_bytes, 10 * front.points.back().plan.peak_bytes);
}

}  // namespace
}  // namespace zg::plan
