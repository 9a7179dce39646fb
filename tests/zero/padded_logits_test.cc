// Logits with more columns than classes: the added ones have no probability and no gradient, so the
// model is trained to the same bits.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

RunConfig Config(TestModel model, DType dtype) {
  RunConfig config;
  config.model = model;
  config.dtype = dtype;
  config.micro_batches = 6;
  return config;
}

TEST(PaddedLogitsTest, TrainTheSameModel) {
  const RunResult expected = TrainOrDie(Config(TestModel::kGpt, DType::kF32));
  const RunConfig config = Config(TestModel::kPaddedGpt, DType::kF32);
  const RunResult padded = TrainOrDie(config);
  EXPECT_NE(padded.ir.find("f32[2,12,32]"), std::string::npos) << "no logits of 32 columns";
  ExpectSameBits(expected, padded);
  EXPECT_EQ(expected.eval_loss, padded.eval_loss);
  ExpectSameOnRanks({1, 3}, config, expected);
}

// In 16 bits the sum of the embedding's two gradients may be rounded at another place.
TEST(PaddedLogitsTest, In16Bits) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const RunResult unpadded = TrainOrDie(Config(TestModel::kGpt, dtype));
    const RunConfig config = Config(TestModel::kPaddedGpt, dtype);
    const RunResult padded = TrainOrDie(config);
    for (size_t i = 0; i < padded.losses.size(); ++i) {
      EXPECT_NEAR(padded.losses[i], unpadded.losses[i], 1e-4 * unpadded.losses[i]);
    }
    ExpectSameOnRanks({1, 2}, config, padded);
  }
}

}  // namespace
}  // namespace zg::testing
