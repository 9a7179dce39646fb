#include "framework/comm/message_chunks.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace zg
