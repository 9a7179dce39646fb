#include "framework/io/checkpoint_names.h"

#include <gtest/gtest.h>

namespace zg {
namespace {

TEST(CheckpointNames, StepsRoundTrip) {
  EXPECT_EQ(StepDirectoryName(100), "step-00000100");
  for (const int64_t step : {int64_t{0}, int64_t{7}, int64_t{99999999}, int64_t{1234567890123}}) {
    EXPECT_EQ(ParseStepDirectoryName(StepDirectoryName(step)), step);
  }
}

TEST(CheckpointNames, OnlyExactlySuchNamesAreSteps) {
  for (const char* name :
       {"", "step-", "step-1", "step-000000100", "step-0000010x", "step-00000100.tmp",
        "step-00000100/", "Step-00000100", "step--0000100", "step-9999999999999999999"}) {
    EXPECT_FALSE(ParseStepDirectoryName(name)) << name;
  }
}

TEST(CheckpointNames, FilesOfACheckpoint) {
  EXPECT_EQ(ShardName(kModelPart, 0, 12), "model-00001-of-00012.safetensors");
  EXPECT_EQ(IndexName(kOptimizerPart), "optimizer.safetensors.index.json");
  EXPECT_TRUE(IsPlainFileName("model-00001-of-00002.safetensors"));
  for (const char* name : {"", ".", "..", "../x", "/x", "x/y", "x\\y", "x\ny"}) {
    EXPECT_FALSE(IsPlainFileName(name)) << name;
  }
}

}  // namespace
}  // namespace zg
