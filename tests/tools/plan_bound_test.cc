// How close the arena of real graphs is to its lower bound.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/tools/planned_jobs.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

struct Model {
  const char* name;
  GptSizes sizes;
};

class PlanBoundTest : public ::testing::TestWithParam<Model> {};

INSTANTIATE_TEST_SUITE_P(Gpt, PlanBoundTest,
                         ::testing::Values(Model{"mini", {6, 6, 384, 256, 256, 8}},
                                           Model{"gpt2", {12, 12, 768, 1024, 50257, 2}},
                                           Model{"gpt2_xl", {48, 25, 1600, 1024, 50257, 1}}),
                         [](const auto& info) { return info.param.name; });

TEST_P(PlanBoundTest, AtEveryStageAndNumberOfRanks) {
  PlanOptions options = GptOf(GetParam().sizes);
  for (const int ranks : {1, 2, 3, 4, 64}) {
    for (const int stage : {0, 1, 2, 3}) {
      if (ranks == 1 && stage > 0) continue;  // nothing to shard
      for (const int64_t micro_steps : {1, 4}) {
        // In turns: the arena's size depends on whether sizes are mixed and lifetimes are short.
        options.compile.dtype = (ranks + stage) % 2 == 0 ? DType::kF32 : DType::kBF16;
        options.compile.recompute.clear();
        if (micro_steps == 4) options.compile.recompute.push_back("blocks.*");
        SCOPED_TRACE(fmt::format("{} ranks, stage {}, {} micro-steps, {}", ranks, stage,
                                 micro_steps, DTypeName(options.compile.dtype)));
        options.ranks = ranks;
        options.compile.zero.stage = stage;
        options.compile.micro_batches = micro_steps * ranks;
        const StatusOr<JobPlan> plan = PlanModel(options);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        EXPECT_LE(plan->ratio(), 1.02);
        EXPECT_GE(plan->ratio(), 1.0);
      }
    }
  }
}

}  // namespace
}  // namespace zg::plan
