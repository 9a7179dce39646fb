#include "framework/io/shard_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zg {
namespace {

using ::testing::HasSubstr;

TEST(ShardLayout, FillsFilesInOrderAndGivesLargeTensorsTheirOwn) {
  const StatusOr<ShardLayout> layout = MakeShardLayout("model",
                                                       {{"a", SafetensorsDType::kF32, {10}},
                                                        {"b", SafetensorsDType::kF32, {0}},
                                                        {"c", SafetensorsDType::kF32, {15}},
                                                        {"d", SafetensorsDType::kF32, {26}},
                                                        {"e", SafetensorsDType::kF32, {1}}},
                                                       100);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  ASSERT_EQ(layout->files.size(), 3u);
  const int shards[] = {0, 0, 0, 1, 2};
  const uint64_t offsets[] = {0, 40, 40, 0, 0};  // in the data
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(layout->places[i].shard, shards[i]) << i;
    const ShardFile& file = layout->files[shards[i]];
    EXPECT_EQ(layout->places[i].offset_bytes, file.layout.prefix.size() + offsets[i]) << i;
    EXPECT_EQ(file.layout.prefix.size() % 8, 0u);
  }
  EXPECT_EQ(layout->files[0].name, "model-00001-of-00003.safetensors");
  EXPECT_EQ(layout->files[0].layout.file_bytes(), layout->files[0].layout.prefix.size() + 100);
  EXPECT_EQ(layout->index.total_bytes, 208u);
  EXPECT_EQ(layout->index.file_by_name.at("d"), "model-00002-of-00003.safetensors");
}

TEST(ShardLayout, NothingToStoreIsNoFile) {
  const StatusOr<ShardLayout> layout = MakeShardLayout("optimizer", {}, 100);
  ASSERT_TRUE(layout.ok());
  EXPECT_TRUE(layout->files.empty());
  EXPECT_EQ(TensorIndexAsJson(layout->index),
            "{\n  \"metadata\": {\n    \"total_size\": 0\n  },\n  \"weight_map\": {}\n}\n");
}

TEST(ShardLayout, ATensorThatNoFileCanHoldIsNamed) {
  const int64_t huge = int64_t{1} << 62;
  EXPECT_THAT(
      MakeShardLayout("model", {{"w", SafetensorsDType::kF32, {huge, 2}}}, 100).status().message(),
      HasSubstr("overflows 64 bits"));
  EXPECT_THAT(
      MakeShardLayout("model",
                      {{"w", SafetensorsDType::kF32, {1}}, {"w", SafetensorsDType::kF32, {1}}}, 100)
          .status()
          .message(),
      HasSubstr("tensor \"w\": the name is there twice"));
}

}  // namespace
}  // namespace zg
