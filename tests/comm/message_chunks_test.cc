#include "framework/comm/message_chunks.h"

#include <gtest/gtest.h>

#include <string>

namespace zg {
namespace {

TEST(MessageChunks, AloneThereIsNobodyToTalkTo) { EXPECT_EQ(MessageWorkspaceBytes(1), 0); }

TEST(MessageChunks, ManyRanksShareAboutSixteenMebibytes) {
  EXPECT_EQ(MessageChunkBytes(2), 60 << 10);
  EXPECT_EQ(MessageWorkspaceBytes(2), 8 * (60 << 10));
  for (int ranks = 2; ranks <= 512; ++ranks) {
    EXPECT_EQ(MessageChunkBytes(ranks) % 4096, 0) << ranks;
    EXPECT_LE(MessageWorkspaceBytes(ranks), 16 << 20) << ranks;
  }
  EXPECT_EQ(MessageChunkBytes(100'000), 4 << 10);  // smaller chunks would be dominated by latency
}

// "+s": posted, "-s": finished.
std::string StepsOf(int64_t num_steps, int64_t failing_post = -1) {
  std::string steps;
  const Status status = RunChunks(
      num_steps,
      [&](int64_t step) {
        steps += "+" + std::to_string(step);
        return step == failing_post ? InvalidArgument("no") : Status::Ok();
      },
      [&](int64_t step) {
        steps += "-" + std::to_string(step);
        return Status::Ok();
      });
  return status.ok() ? steps : steps + status.message();
}

TEST(RunChunks, AStepIsPostedOnceItsSlotIsFree) {
  static_assert(kMessageDepth == 8);
  EXPECT_EQ(StepsOf(0), "");
  EXPECT_EQ(StepsOf(2), "+0+1-0-1");
  EXPECT_EQ(StepsOf(10), "+0+1+2+3+4+5+6+7-0+8-1+9-2-3-4-5-6-7-8-9");
}

TEST(RunChunks, EndsAtAnError) { EXPECT_EQ(StepsOf(3, 1), "+0+1no"); }

}  // namespace
}  // namespace zg
