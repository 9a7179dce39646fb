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

// Highway's targets have lower bits the better they are.
TEST(InstructionSetTest, HighwayKeepsToIt) {
  const InstructionSet set = VectorInstructionSet();
  const int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  if (set == InstructionSet::kAvx512) EXPECT_LE(best, HWY_AVX3);
  if (set == InstructionSet::kAvx2) EXPECT_EQ(best, HWY_AVX2);
  if (Cap() == InstructionSet::kBaseline) EXPECT_GT(best, HWY_SSSE3);
}

}  // namespace
}  // namespace zg
