#include "zero/stage_memory.h"

#include <gtest/gtest.h>

namespace zg::zero {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

// Adam in f32 on 4 ranks: 8 GiB of parameters and as many of gradients, 16 of state, 2 of the rest.
StageMemory AtStage0() {
  StageMemory memory;
  memory.ranks = 4;
  memory.arena_bytes = 34 * kGib;
  memory.category_bytes[static_cast<int>(MemoryCategory::kParameters)] = 8 * kGib;
  memory.category_bytes[static_cast<int>(MemoryCategory::kGradients)] = 8 * kGib;
  memory.category_bytes[static_cast<int>(MemoryCategory::kOptimizerState)] = 16 * kGib;
  memory.bucket_bytes = kGib / 4;
  return memory;
}

TEST(StageMemoryTest, AStageDividesWhatItDivides) {
  const StageMemory memory = AtStage0();
  EXPECT_EQ(EstimateArenaBytes(memory, 0), 34 * kGib);
  EXPECT_EQ(EstimateArenaBytes(memory, 1), 22 * kGib);
  EXPECT_EQ(EstimateArenaBytes(memory, 2), 16 * kGib + kGib / 4);
  EXPECT_EQ(EstimateArenaBytes(memory, 3), 10 * kGib + kGib / 2);
}

TEST(StageMemoryTest, FromAnyStage) {
  StageMemory memory = AtStage0();
  memory.stage = 1;
  memory.arena_bytes = 22 * kGib;
  memory.category_bytes[static_cast<int>(MemoryCategory::kOptimizerState)] = 4 * kGib;
  EXPECT_EQ(EstimateArenaBytes(memory, 0), 34 * kGib);
  EXPECT_EQ(EstimateArenaBytes(memory, 3), 10 * kGib + kGib / 2);
}

TEST(StageMemoryTest, TheSmallestStageThatFitsIsTheHint) {
  const StageMemory memory = AtStage0();
  EXPECT_EQ(StageHint(memory, 34 * kGib), "");
  EXPECT_EQ(StageHint(memory, 34 * kGib - 1),
            "stage 1 needs about 22.00 GiB per rank, which would fit");
  EXPECT_EQ(StageHint(memory, 12 * kGib),
            "stage 3 needs about 10.50 GiB per rank, which would fit");
  EXPECT_EQ(StageHint(memory, 10 * kGib),
            "no stage would fit: stage 3 needs about 10.50 GiB per rank; more ranks, smaller "
            "micro-batches or --recompute need less");
}

TEST(StageMemoryTest, OneRankHasNothingToDivide) {
  StageMemory memory = AtStage0();
  memory.ranks = 1;
  EXPECT_EQ(StageHint(memory, kGib),
            "a stage divides memory among ranks, and this is one rank; smaller micro-batches or "
            "--recompute need less");
}

}  // namespace
}  // namespace zg::zero
