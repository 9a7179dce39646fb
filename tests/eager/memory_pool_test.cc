#include "framework/eager/memory_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/testing/fake_device.h"

namespace zg::eager {
namespace {

std::shared_ptr<std::byte> Take(MemoryPool& pool, int64_t bytes) {
  StatusOr<std::shared_ptr<std::byte>> block = pool.Take(bytes);
  EXPECT_TRUE(block.ok()) << block.status().message();
  return std::move(block).value();
}

TEST(MemoryPool, HandsOutWhatCameBack) {
  MemoryPool pool(&CpuDevice());
  const std::byte* const first = Take(pool, 100).get();
  EXPECT_EQ(pool.unused_bytes(), 128);
  EXPECT_EQ(Take(pool, 120).get(), first);  // as many lines of 64 bytes
  const auto held = Take(pool, 128);
  EXPECT_EQ(held.get(), first);
  EXPECT_EQ(pool.unused_bytes(), 0);
}

// Twice what was in use at once, however many sizes there were.
TEST(MemoryPool, KeepsABoundedNumberOfBytes) {
  MemoryPool pool(&CpuDevice(), /*always_kept_bytes=*/0);
  for (int64_t size = 1; size <= 1000; ++size) Take(pool, 64 * size);
  EXPECT_LE(pool.unused_bytes(), 2 * 64000);
  EXPECT_GE(pool.unused_bytes(), 64000);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<std::byte>> step;
    for (int64_t size = 1; size <= 100; ++size) step.push_back(Take(pool, 64 * size));
  }
  EXPECT_LE(pool.unused_bytes(), 2 * 64 * 5050);
}

TEST(MemoryPool, GivesBackWhatWasUnusedLongest) {
  MemoryPool pool(&CpuDevice(), /*always_kept_bytes=*/0);
  const std::byte* addresses[4];
  for (int i = 0; i < 4; ++i) addresses[i] = Take(pool, 64 * (i + 1)).get();
  EXPECT_EQ(pool.unused_bytes(), 192 + 256);  // of 640, with at most 2 * 256
  EXPECT_EQ(Take(pool, 192).get(), addresses[2]);
  EXPECT_EQ(Take(pool, 256).get(), addresses[3]);
}

TEST(MemoryPool, AlwaysKeepsSome) {
  MemoryPool pool(&CpuDevice(), /*always_kept_bytes=*/640);
  for (int i = 0; i < 4; ++i) Take(pool, 64 * (i + 1));
  EXPECT_EQ(pool.unused_bytes(), 640);
  Take(pool, 320);
  EXPECT_EQ(pool.unused_bytes(), 640 + 320 - 64 - 128 - 192);
}

TEST(MemoryPool, GivesUnusedBlocksBackToAFullDevice) {
  testing::FakeDevice device;
  MemoryPool pool(&device);
  Take(pool, 64);
  const auto used = Take(pool, 128);
  EXPECT_EQ(pool.unused_bytes(), 64);
  DeviceMemoryUse full;
  full.free_bytes = 256;
  device.set_memory_use(full);
  const auto too_large = pool.Take(1000);
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.status().message(), "fake: 1024 bytes do not fit");
  EXPECT_EQ(pool.unused_bytes(), 0);
  Take(pool, 256);
}

TEST(MemoryPool, BlocksOutliveThePool) {
  std::shared_ptr<std::byte> block;
  {
    MemoryPool pool(&CpuDevice());
    block = Take(pool, 64);
  }
  block.get()[63] = std::byte{1};
}

}  // namespace
}  // namespace zg::eager
