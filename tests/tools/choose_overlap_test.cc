// `overlap` auto by prices of transfers, as the plan shows it.

#include "zero/zerograph/choose_overlap.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "framework/base/format.h"
#include "framework/plan/json_report.h"
#include "framework/plan/text_report.h"
#include "tests/tools/planned_jobs.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMB = 1'000'000;

TEST(BestOverlap, TakesTheLeastMemoryAmongTheFast) {
  EXPECT_EQ(BestOverlap({{0, 10, 5 * kMB}}), 0u);
  EXPECT_EQ(BestOverlap({{0, 10, 5 * kMB}, {kMB, 8, 6 * kMB}, {2 * kMB, 8, 7 * kMB}}), 1u);
  EXPECT_EQ(BestOverlap({{0, 10, 5 * kMB}, {kMB, 8.3, 6 * kMB}, {2 * kMB, 8, 7 * kMB}}), 1u);
  EXPECT_EQ(BestOverlap({{0, 10, 5 * kMB}, {kMB, 8.5, 6 * kMB}, {2 * kMB, 8, 7 * kMB}}), 2u);
  EXPECT_EQ(BestOverlap({{0, 10, 5 * kMB}, {kMB, 10, 5 * kMB}, {2 * kMB, 11, 4 * kMB}}), 0u);
}

TEST(OverlapTable, NamesTheChosen) {
  const OverlapChoices choices = {{{0, 10, 5 * kMB},
                                   {16 * kMB, 8.25, 6 * kMB},
                                   {CompileOptions::kUnlimitedBytes, 8.2, 7 * kMB}},
                                  1};
  EXPECT_EQ(OverlapTable(choices), R"(  overlap              step  memory
  off               10.0 ms  5.0 MB
  16.0 MB (chosen)   8.2 ms  6.0 MB
  unlimited          8.2 ms  7.0 MB
)");
}

TEST(RanksPerHost, AreAsManyOnEach) {
  EXPECT_EQ(RanksPerHost({}).value(), 0);
  EXPECT_EQ(RanksPerHost({0, 0, 0}).value(), 0);
  EXPECT_EQ(RanksPerHost({0, 1}).value(), 1);
  EXPECT_EQ(RanksPerHost({0, 0, 2, 2}).value(), 2);
  EXPECT_EQ(RanksPerHost({0, 0, 2}).value(), 2);
  for (const std::vector<int>& hosts : {std::vector<int>{0, 1, 0, 1}, {0, 0, 2, 3}}) {
    EXPECT_THAT(RanksPerHost(hosts).status().message(),
                HasSubstr("expected as many ranks on every host, numbered host by host"));
  }
}

// A tiny GPT on two hosts, whose transfers take `ms` per MB in all, of which processors work
// `processor_ms`.
PlanOptions OnTwoHosts(double ms, double processor_ms, int stage, std::vector<int> hosts) {
  Profile profile = {3, true, 10, 0, {}};
  profile.transfers = {{"all_reduce", "backward", "other types", 1, ms, processor_ms, 1e6}};
  PlanOptions options = OnRanks(TinyGpt(), 2, stage);
  options.comm = "messages";
  options.machine.ranks_per_host = 1;
  options.machine.gflops = 0.1;
  options.machine.prices =
      std::make_shared<PriceList>(profile, "p.json", ProfiledRanks{std::move(hosts), false});
  return options;
}

PlanReport ReportOf(const PlanOptions& options) {
  StatusOr<PlanReport> report = PlanModel(options, /*compare_stages=*/false);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return std::move(report).value();
}

TEST(ChooseOverlap, TakesTheLimitOfTheShortestStep) {
  for (const int stage : {0, 2, 3}) {
    const PlanOptions options = OnTwoHosts(100, 10, stage, {0, 1});
    const PlanReport report = ReportOf(options);
    const OverlapChoices& overlap = report.overlap;
    ASSERT_GE(overlap.tried.size(), 3u) << stage;
    EXPECT_EQ(overlap.tried[0].max_bytes, 0);
    EXPECT_EQ(overlap.tried[1].max_bytes, options.compile.zero.bucket_bytes);
    EXPECT_EQ(overlap.tried.back().max_bytes, CompileOptions::kUnlimitedBytes);
    EXPECT_GT(overlap.best().max_bytes, 0);
    EXPECT_LT(overlap.best().step_ms, 0.95 * overlap.tried[0].step_ms);
    EXPECT_LE(overlap.best().step_ms, 1.05 * overlap.tried.back().step_ms);
    // The plan is that of the choice.
    EXPECT_EQ(report.plan.options.overlap_bytes, overlap.best().max_bytes);
    EXPECT_EQ(report.plan.peak_bytes, overlap.best().peak_bytes);
    EXPECT_DOUBLE_EQ(report.plan.time.step_ms(), overlap.best().step_ms);
    EXPECT_GT(report.plan.time.slowed_ms, 0);
    const std::string text = TextReport(report);
    EXPECT_THAT(text, HasSubstr(" (chosen)"));
    EXPECT_THAT(text, HasSubstr(" sending by those prices (0.0% of it for transfers that were"));
    EXPECT_THAT(text, HasSubstr(", which takes "));
    EXPECT_THAT(JsonReport(report), HasSubstr("\"chosen\": true"));
    // Every limit is predicted as if it had been asked for.
    for (const OverlapChoice& choice : overlap.tried) {
      PlanOptions asked = options;
      asked.compile.overlap_bytes = choice.max_bytes;
      const PlanReport alone = ReportOf(asked);
      EXPECT_TRUE(alone.overlap.tried.empty());
      EXPECT_DOUBLE_EQ(alone.plan.time.step_ms(), choice.step_ms);
      EXPECT_EQ(alone.plan.peak_bytes, choice.peak_bytes);
    }
  }
}

TEST(ChooseOverlap, IsOffWhereTransfersAreAllWorkOfTheProcessor) {
  const PlanReport report = ReportOf(OnTwoHosts(100, 100, 2, {0, 1}));
  ASSERT_FALSE(report.overlap.tried.empty());
  EXPECT_EQ(report.overlap.best().max_bytes, 0);
}

TEST(ChooseOverlap, GoesByTheRuleWithoutPricesOfSuchRanks) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, {0, 0}, {0, 1, 2}}) {
    const PlanOptions options = OnTwoHosts(100, 10, 2, hosts);
    const PlanReport report = ReportOf(options);
    EXPECT_TRUE(report.overlap.tried.empty());
    EXPECT_EQ(report.plan.options.overlap_bytes, 4 * options.compile.zero.bucket_bytes);
    EXPECT_THAT(TextReport(report), Not(HasSubstr("chosen")));
  }
}

TEST(ChooseOverlap, TakesWhatFitsIntoTheMemory) {
  for (const std::vector<int>& hosts : {std::vector<int>{0, 1}, {}}) {  // by prices; by the rule
    SCOPED_TRACE(hosts.size());
    PlanOptions options = OnTwoHosts(100, 10, 3, hosts);
    options.compile.zero.bucket_bytes = 4096;
    const PlanReport most = ReportOf(options);
    const int64_t most_bytes = most.plan.options.overlap_bytes;
    ASSERT_GT(most_bytes, options.compile.zero.bucket_bytes);
    // As much as is needed is no limit.
    options.compile.max_memory_bytes = most.plan.peak_bytes;
    EXPECT_EQ(ReportOf(options).plan.options.overlap_bytes, most_bytes);
    options.compile.max_memory_bytes = most.plan.peak_bytes - 1;
    const PlanReport less = ReportOf(options);
    EXPECT_LT(less.plan.options.overlap_bytes, most_bytes);
    EXPECT_GT(less.plan.options.overlap_bytes, 0);
    for (const OverlapChoice& choice : less.overlap.tried) {
      EXPECT_LE(choice.peak_bytes, options.compile.max_memory_bytes);
    }
    // Nothing fits: the error is that of the program without overlap.
    PlanOptions off = options;
    off.compile.overlap_bytes = 0;
    off.compile.max_memory_bytes = CompileOptions::kUnlimitedBytes;
    options.compile.max_memory_bytes = ReportOf(off).plan.peak_bytes - 1;
    EXPECT_THAT(
        PlanModel(options, /*compare_stages=*/false).status().message(),
        HasSubstr(fmt::format("a rank needs {}", FormatExactBytes(ReportOf(off).plan.peak_bytes))));
  }
}

}  // namespace
}  // namespace zg::plan
