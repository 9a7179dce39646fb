#include "framework/base/median.h"

#include <gtest/gtest.h>

namespace zg {
namespace {

TEST(Median, IsInTheMiddleOrBetweenTheTwoThatAre) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({3, 1}), 2);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({9, 1, 4, 2}), 3);
}

}  // namespace
}  // namespace zg
