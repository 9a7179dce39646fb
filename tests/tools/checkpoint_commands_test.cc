// The output of //tools:checkpoint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/io/directory_test.h"
#include "tests/zero/small_trainer.h"
#include "tools/checkpoint/commands.h"

namespace zg::checkpoint_tool {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointToolTest : public DirectoryTest {
 protected:
  CheckpointToolTest() { testing::SaveSteps({}, root_, 2); }
};

TEST_F(CheckpointToolTest, InspectShowsStepSettingsAndTensors) {
  const StatusOr<std::string> text = Inspect(root_);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("model small, step 2, 2 updates"));
  EXPECT_THAT(*text, HasSubstr("parameters 524 B, optimizer state 524 B"));
  EXPECT_THAT(*text, HasSubstr("  micro-batches = 2\n"));
  EXPECT_THAT(*text, HasSubstr("hidden.weight"));
  EXPECT_THAT(*text, HasSubstr("F32[8,12]"));
  EXPECT_THAT(*text, HasSubstr("optimizer-00002-of-00003.safetensors"));
  EXPECT_THAT(Inspect(root_ + "/none").status().message(), HasSubstr("No such file"));
}

TEST_F(CheckpointToolTest, VerifyReadsEveryByte) {
  const StatusOr<std::string> text = Verify(root_ + "/step-00000001");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("step 1, 8 tensors in 9 files, "));
  const std::string shard = root_ + "/step-00000001/optimizer-00003-of-00003.safetensors";
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }
  EXPECT_THAT(Verify(root_ + "/step-00000001").status().message(),
              HasSubstr(shard + ": its sha256 is "));
  EXPECT_TRUE(Inspect(root_ + "/step-00000001").ok());  // which reads no data
  EXPECT_FALSE(Diff(root_, root_ + "/step-00000001").ok());
}

TEST_F(CheckpointToolTest, DiffNamesWhatDiffers) {
  const StatusOr<Difference> same = Diff(root_, root_ + "/step-00000002");
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_TRUE(same->is_same);
  EXPECT_EQ(same->text, "8 tensors are the same, and so is all else\n");

  const StatusOr<Difference> steps = Diff(root_ + "/step-00000001", root_);
  ASSERT_TRUE(steps.ok());
  EXPECT_FALSE(steps->is_same);
  EXPECT_THAT(steps->text, HasSubstr("step: 1 | 2\n"));
  EXPECT_THAT(steps->text, HasSubstr("hidden.bias: "));
  EXPECT_THAT(steps->text, HasSubstr(" of 96 elements differ, by at most "));
  EXPECT_THAT(steps->text, Not(HasSubstr("seed")));

  testing::SmallTrainerConfig larger;
  larger.hidden = 9;
  larger.has_momentum = false;
  testing::SaveSteps(larger, root_ + "_larger", 2);
  const StatusOr<Difference> models = Diff(root_, root_ + "_larger");
  ASSERT_TRUE(models.ok());
  EXPECT_THAT(models->text, HasSubstr("optimizer: sgd_momentum_update"));
  EXPECT_THAT(models->text, HasSubstr("hidden.weight: F32[8,12] | F32[9,12]\n"));
  EXPECT_THAT(models->text, HasSubstr("hidden.weight.momentum_buffer: only in the first\n"));
  EXPECT_THAT(Diff(root_ + "_larger", root_)->text, HasSubstr("only in the second"));
  fs::remove_all(root_ + "_larger");
}

}  // namespace
}  // namespace zg::checkpoint_tool
