// Run with different ZG_INSTRUCTION_SETs: the environment is read once per process.
#include "framework/base/instruction_set.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstdint>

namespace zg {
namespace {

InstructionSet Cap() { return InstructionSetFromEnvironment().value(); }

TEST(InstructionSetTest, NothingAboveTheCapIsUsed) {
  EXPECT_TRUE(MayUse(Cap()));
  EXPECT_TRUE(MayUse(InstructionSet::kBaseline));
  EXPECT_EQ(MayUse(InstructionSet::kAmx), Cap() == InstructionSet::kAmx);
  EXPECT_LE(VectorInstructionSet(), Cap());
}

// Better Highway targets have lower bits.
TEST(InstructionSetTest, HighwayKeepsToIt) {
  const int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  switch (VectorInstructionSet()) {
    case InstructionSet::kAvx512:
      EXPECT_LE(best, HWY_AVX3);
      break;
    case InstructionSet::kAvx2:
      EXPECT_EQ(best, HWY_AVX2);
      break;
    default:
      EXPECT_GT(best, HWY_AVX2);
  }
}

}  // namespace
}  // namespace zg
