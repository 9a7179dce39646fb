// Frequencies of rotary positions.
#include <gtest/gtest.h>

#include <utility>

#include "framework/nn/nn.h"

namespace zg {
namespace {

// transformers 5.23, ROPE_INIT_FUNCTIONS["yarn"] with head_dim 64, rope_theta 10000, factor 40,
// original_max_position_embeddings 4096.
TEST(Rotary, YarnHasTheFrequenciesOfTransformers) {
  const RotaryOptions options = yarn_rotary(64, 10000.0, 40.0, 4096);
  ASSERT_EQ(options.frequencies.size(), 32u);
  const std::pair<int, double> expected[] = {{0, 1.0},
                                             {10, 0.05623412877321243},
                                             {11, 0.039006926119327545},
                                             {12, 0.026879360899329185},
                                             {20, 0.0007905694073997438},
                                             {22, 0.00017782794020604342},
                                             {23, 3.333803397254087e-05},
                                             {31, 3.3338035336782923e-06}};
  for (const auto& [pair, frequency] : expected) {
    EXPECT_NEAR(options.frequencies[pair], frequency, 1e-6 * frequency) << pair;
  }
  EXPECT_NEAR(options.scale, 1.3688879454113936, 1e-12);
  EXPECT_EQ(options.rotated, 64);
  EXPECT_EQ(yarn_rotary(64, 10000.0, 1.0, 4096).scale, 1.0);
}

}  // namespace
}  // namespace zg
