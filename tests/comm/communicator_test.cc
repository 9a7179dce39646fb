#include "framework/comm/communicator.h"

#include <gtest/gtest.h>

namespace zg {
namespace {

TEST(BytesSentTest, IsTheFormula) {
  using Kind = CollectiveKind;
  EXPECT_EQ(BytesSent(Kind::kReduceScatter, 1200, 4, 4), 3 * 300 * 4);
  EXPECT_EQ(BytesSent(Kind::kAllGather, 1200, 2, 3), 2 * 400 * 2);
  EXPECT_EQ(BytesSent(Kind::kAllToAll, 8, 1, 2), 4);
  EXPECT_EQ(BytesSent(Kind::kAllReduce, 1200, 4, 4), 2 * 3 * 300 * 4);
}

TEST(BytesSentTest, RoundsTheChunkUpToWholeElements) {
  EXPECT_EQ(BytesSent(CollectiveKind::kAllReduce, 10, 4, 4), 2 * 3 * 3 * 4);
  EXPECT_EQ(BytesSent(CollectiveKind::kAllReduce, 1, 4, 3), 2 * 2 * 4);
}

TEST(BytesSentTest, TermsAndSumsMayDifferInSize) {
  const ReductionTypes rounded = DType::kBF16;
  const ReductionTypes widened = {DType::kF16, DType::kF32};
  EXPECT_EQ(BytesSent(CollectiveKind::kReduceScatter, 1200, rounded, 4), 3 * 300 * 2);
  EXPECT_EQ(BytesSent(CollectiveKind::kReduceScatter, 1200, widened, 4), 3 * 300 * 2);
  EXPECT_EQ(BytesSent(CollectiveKind::kAllReduce, 10, rounded, 4), 3 * 3 * (2 + 2));
  EXPECT_EQ(BytesSent(CollectiveKind::kAllReduce, 10, widened, 4), 3 * 3 * (2 + 4));
}

TEST(BytesSentTest, OneRankSendsNothing) {
  for (auto kind : {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
                    CollectiveKind::kAllGather, CollectiveKind::kAllToAll}) {
    EXPECT_EQ(BytesSent(kind, 1000, 4, 1), 0) << CollectiveName(kind);
  }
}

}  // namespace
}  // namespace zg
