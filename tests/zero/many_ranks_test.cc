// A thousand virtual ranks, each with its own arena and data: the bits of one rank that computes
// all micro-batches, and on every rank exactly the bytes of the plan.

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/sanitizer.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

// Sanitizers make a thread cost ten megabytes and ten times the time.
constexpr int kRanks = kHasSanitizer ? 64 : 1024;

class ManyRanksTest : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Stages, ManyRanksTest, ::testing::Values(0, 1, 2, 3));

TEST_P(ManyRanksTest, ManyRanksAreOneRank) {
  RunConfig config;
  config.model = TestModel::kMlp;
  config.micro_batches = kRanks;
  config.steps = 2;
  config.bucket_bytes = 1 << 20;
  const RunResult expected = TrainOrDie(config);

  config.ranks = kRanks;
  config.stage = GetParam();
  const StatusOr<std::vector<RunResult>> results = TrainOnAllRanks(config);
  ASSERT_TRUE(results.ok()) << results.status().message();
  ExpectSameBits(expected, (*results)[0]);
  for (size_t rank = 0; rank < results->size(); ++rank) {
    SCOPED_TRACE(rank);
    ExpectPlanIsMeasured((*results)[rank], config.steps);
    if (HasFailure()) break;  // the others would fail in the same way
  }
}

}  // namespace
}  // namespace zg::testing
