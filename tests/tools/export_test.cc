// A checkpoint's tensors in one file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "framework/io/safetensors.h"
#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"
#include "tests/tools/weight_files.h"
#include "tests/zero/small_trainer.h"
#include "tools/checkpoint/commands.h"

namespace zg::checkpoint_tool {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ExportTest : public DirectoryTest {
 protected:
  ExportTest() {
    fs::create_directory(root_);
    options_.from = Path("saved");
    options_.to = Path("file");
    testing::SaveSteps({2, 3}, options_.from, 2);  // 2 ranks, stage 3; several shards
  }

  ExportOptions options_;
};

TEST_F(ExportTest, HasEveryTensorOfTheCheckpoint) {
  const StatusOr<std::string> said = Export(options_);
  ASSERT_TRUE(said.ok()) << said.status().message();
  EXPECT_EQ(*said, options_.to + ": 4 tensors of step 2, 524 B in F32\n");
  const testing::StoredTensors parameters = testing::ReadStored(options_.to);
  EXPECT_EQ(parameters.size(), 4u);
  options_.with_optimizer = true;
  options_.may_replace = true;
  ASSERT_TRUE(Export(options_).ok());
  const testing::StoredTensors all = testing::ReadStored(options_.to);
  EXPECT_EQ(all.size(), 8u);
  for (const char* part : {"model", "optimizer"}) {
    for (const char* shard : {"1", "2", "3"}) {
      const std::string path =
          root_ + "/saved/step-00000002/" + part + "-0000" + shard + "-of-00003.safetensors";
      for (const auto& [name, tensor] : testing::ReadStored(path)) {
        EXPECT_EQ(all.at(name).shape, tensor.shape);
        EXPECT_EQ(all.at(name).bytes, tensor.bytes);
        EXPECT_EQ(parameters.count(name), std::string(part) == "model" ? 1u : 0u);
      }
    }
  }
  const StatusOr<SafetensorsFile> file = SafetensorsFile::Open(options_.to);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->metadata().at("step"), "2");
  EXPECT_EQ(file->metadata().at("model"), "small");
}

TEST_F(ExportTest, RoundsToSixteenBits) {
  ASSERT_TRUE(Export(options_).ok());
  for (const SafetensorsDType dtype : {SafetensorsDType::kBF16, SafetensorsDType::kF16}) {
    ExportOptions half = options_;
    half.to = root_ + "/half";
    half.dtype = dtype;
    half.may_replace = true;
    ASSERT_TRUE(Export(half).ok());
    const testing::StoredTensors rounded = testing::ReadStored(half.to);
    for (const auto& [name, tensor] : testing::ReadStored(options_.to)) {
      EXPECT_EQ(rounded.at(name).dtype, dtype);
      EXPECT_EQ(rounded.at(name).bytes, testing::Rounded(tensor, dtype).bytes);
    }
  }
}

TEST_F(ExportTest, TakesWholeCheckpointsOnly) {
  std::ofstream(options_.to) << "mine";
  EXPECT_THAT(Export(options_).status().message(), HasSubstr("file: is there already"));
  options_.may_replace = true;
  {
    std::fstream shard(root_ + "/saved/step-00000002/model-00002-of-00003.safetensors",
                       std::ios::in | std::ios::out | std::ios::binary);
    shard.seekp(-1, std::ios::end);
    shard.put('x');
  }
  EXPECT_THAT(Export(options_).status().message(),
              HasSubstr("model-00002-of-00003.safetensors: its sha256 is "));
  EXPECT_EQ(ReadTestFile(options_.to), "mine");
  testing::WriteStored(root_ + "/foreign", {{"0.bias", testing::Counting({2})}});
  options_.from = root_ + "/foreign";
  EXPECT_THAT(Export(options_).status().message(),
              HasSubstr("got weights of another program, expected a checkpoint; use convert"));
  options_.from = root_ + "/none";
  EXPECT_THAT(Export(options_).status().message(), HasSubstr("none: no such file"));
}

}  // namespace
}  // namespace zg::checkpoint_tool
