#include "framework/eager/memory_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace zg::eager {
namespace {

TEST(MemoryPool, HandsOutWhatCameBack) {
  MemoryPool pool;
  const std::byte* const first = pool.Take(100).get();
  EXPECT_EQ(pool.unused_bytes(), 128);
  EXPECT_EQ(pool.Take(120).get(), first);  // as many lines of 64 bytes
  const auto held = pool.Take(128);
  EXPECT_EQ(held.get(), first);
  EXPECT_EQ(pool.unused_bytes(), 0);
}

// Twice what was in use at once, however many sizes there were.
TEST(MemoryPool, KeepsABoundedNumberOfBytes) {
  MemoryPool pool(/*always_kept_bytes=*/0);
  for (int64_t size = 1; size <= 1000; ++size) pool.Take(64 * size);
  EXPECT_LE(pool.unused_bytes(), 2 * 64000);
  EXPECT_GE(pool.unused_bytes(), 64000);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<std::byte>> step;
    for (int64_t size = 1; size <= 100; ++size) step.push_back(pool.Take(64 * size));
  }
  EXPECT_LE(pool.unused_bytes(), 2 * 64 * 5050);
}

TEST(MemoryPool, GivesBackWhatWasUnusedLongest) {
  MemoryPool pool(/*always_kept_bytes=*/0);
  const std::byte* addresses[4];
  for (int i = 0; i < 4; ++i) addresses[i] = pool.Take(64 * (i + 1)).get();
  EXPECT_EQ(pool.unused_bytes(), 192 + 256);  // of 640, with at most 2 * 256
  EXPECT_EQ(pool.Take(192).get(), addresses[2]);
  EXPECT_EQ(pool.Take(256).get(), addresses[3]);
}

TEST(MemoryPool, AlwaysKeepsSome) {
  MemoryPool pool(/*always_kept_bytes=*/640);
  for (int i = 0; i < 4; ++i) pool.Take(64 * (i + 1));
  EXPECT_EQ(pool.unused_bytes(), 640);
  pool.Take(320);
  EXPECT_EQ(pool.unused_bytes(), 640 + 320 - 64 - 128 - 192);
}

TEST(MemoryPool, BlocksOutliveThePool) {
  std::shared_ptr<std::byte> block;
  {
    MemoryPool pool;
    block = pool.Take(64);
  }
  block.get()[63] = std::byte{1};
}

}  // namespace
}  // namespace zg::eager
