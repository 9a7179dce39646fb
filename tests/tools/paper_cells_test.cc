// Every cell of table 1 of the ZeRO paper from real graphs: GPTs of 7.5, 128 and 1000 billion
// parameters, compiled in mixed precision for each number of ranks and stage.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/sanitizer.h"
#include "tests/tools/model_state_bytes.h"
#include "tests/tools/planned_jobs.h"
#include "tools/plan/planned_model.h"
#include "zero/memory_model.h"

namespace zg::plan {
namespace {

// Shapes have the nominal number of parameters within 0.5 %; buckets are padded.
constexpr double kTolerance = 0.005;

// Sanitizers make compiling ten times as slow, so they run a sample.
const std::vector<int> kRanks = testing::AllOrSample({1, 4, 16, 64, 256, 1024}, {4, 1024});

struct Column {
  const char* preset;
  double num_parameters;
};

class PaperCellsTest : public ::testing::TestWithParam<Column> {};

INSTANTIATE_TEST_SUITE_P(Table1, PaperCellsTest,
                         ::testing::Values(Column{"7.5b", 7.5e9}, Column{"128b", 128e9},
                                           Column{"1t", 1e12}),
                         [](const auto& info) {
                           return fmt::format("{:.0f}M", info.param.num_parameters / 1e6);
                         });

TEST_P(PaperCellsTest, GraphsNeedWhatTheFormulasSay) {
  PlanOptions options = GptPreset(GetParam().preset);
  options.compile.dtype = DType::kBF16;
  for (const int ranks : kRanks) {
    for (const int stage : {1, 2, 3}) {
      if (ranks == 1 && stage > 1) continue;  // the same graph
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      options.ranks = ranks;
      options.compile.micro_batches = ranks;
      options.compile.zero.stage = stage;
      const StatusOr<JobPlan> plan = PlanModel(options);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      const StatusOr<zero::ModelStateBytes> expected =
          zero::PredictModelStates({GetParam().num_parameters, ranks, stage});
      ASSERT_TRUE(expected.ok());
      EXPECT_NEAR(ModelStateBytesOf(*plan) / expected->total(), 1, kTolerance);
    }
  }
}

}  // namespace
}  // namespace zg::plan
