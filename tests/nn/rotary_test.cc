// Frequencies of rotary positions.
#include <gtest/gtest.h>

#include <map>

#include "framework/nn/nn.h"

namespace zg {
namespace {

void ExpectFrequencies(const RotaryOptions& options, const std::map<int, double>& of_pairs) {
  for (const auto& [pair, frequency] : of_pairs) {
    EXPECT_NEAR(options.frequencies[pair], frequency, 1e-6 * frequency) << pair;
  }
}

// transformers 5.23, ROPE_INIT_FUNCTIONS["yarn"] with head_dim 64, rope_theta 10000, factor 40,
// original_max_position_embeddings 4096.
TEST(Rotary, YarnHasTheFrequenciesOfTransformers) {
  const RotaryOptions options = yarn_rotary(64, 10000.0, 40.0, 4096);
  ASSERT_EQ(options.frequencies.size(), 32u);
  const std::map<int, double> expected = {{0, 1.0},
                                          {10, 0.05623412877321243},
                                          {11, 0.039006926119327545},
                                          {12, 0.026879360899329185},
                                          {20, 0.0007905694073997438},
                                          {22, 0.00017782794020604342},
                                          {23, 3.333803397254087e-05},
                                          {31, 3.3338035336782923e-06}};
  ExpectFrequencies(options, expected);
  EXPECT_NEAR(options.scale, 1.3688879454113936, 1e-12);
  EXPECT_EQ(options.rotated, 64);
  // gpt-oss: rope_theta 150000, factor 32, and "truncate": false.
  const RotaryOptions exact = yarn_rotary(64, 150000.0, 32.0, 4096, 32.0, 1.0, /*rounds=*/false);
  const std::map<int, double> of_exact = {{0, 1.0},
                                          {7, 0.0737445652},
                                          {8, 0.0508132726},
                                          {9, 0.0317056961},
                                          {12, 0.00679495931},
                                          {16, 0.000456483918},
                                          {17, 0.000129318694},
                                          {18, 3.83088118e-05},
                                          {31, 3.0235114e-07}};
  ExpectFrequencies(exact, of_exact);
  EXPECT_NEAR(exact.scale, 1.3465735902799727, 1e-12);
  EXPECT_EQ(yarn_rotary(64, 10000.0, 1.0, 4096).scale, 1.0);
}

}  // namespace
}  // namespace zg
