// Beam searches of transformers over tables of logits (tests/reference/make_beam_search.py).
#include "framework/train/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace zg {
namespace {

TEST(BeamSearch, FindsTheBeamsOfTransformers) {
  std::ifstream file("tests/reference/beam_search.json");
  const auto searches = nlohmann::json::parse(file);
  EXPECT_EQ(searches.size(), 7);
  for (const auto& reference : searches) {
    BeamSearchOptions options;
    options.max_tokens = reference["max_tokens"];
    options.stop = reference["stop"].get<int64_t>();
    options.length_penalty = reference["length_penalty"];
    BeamSearch search(reference["beams"], options);
    ASSERT_TRUE(search.take(reference["logits"][reference["last_token"].get<int>()]).ok());
    while (!search.done()) {
      std::vector<float> logits;
      for (const int64_t token : search.tokens()) {
        const std::vector<float> row = reference["logits"][token];
        logits.insert(logits.end(), row.begin(), row.end());
      }
      ASSERT_TRUE(search.take(logits).ok());
    }
    const auto& expected = reference["expected"];
    ASSERT_EQ(search.best().size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const Beam& beam = search.best()[i];
      EXPECT_EQ(beam.tokens, expected[i]["tokens"].get<std::vector<int64_t>>()) << "beam " << i;
      if (expected[i]["score"].is_null()) continue;  // a search of one beam
      EXPECT_NEAR(beam.score, expected[i]["score"].get<double>(), 1e-5) << "beam " << i;
    }
  }
}

// At first there are fewer tokens than beams.
TEST(BeamSearch, KeepsAsManyBeamsAsThereAre) {
  BeamSearch search(4, {.max_tokens = 2});
  ASSERT_TRUE(search.take({0.5f, 1.0f, -std::numeric_limits<float>::infinity()}).ok());
  EXPECT_EQ(search.tokens(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(search.parents(), (std::vector<int64_t>{0, 0}));
  ASSERT_TRUE(search.take({0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}).ok());
  EXPECT_TRUE(search.done());
  ASSERT_EQ(search.best().size(), 4);
  EXPECT_EQ(search.best()[0].tokens, (std::vector<int64_t>{1, 0}));  // the first of equal ones
  EXPECT_EQ(search.best()[3].tokens, (std::vector<int64_t>{0, 0}));
  EXPECT_TRUE(BeamSearch(4, {.max_tokens = 0}).done());
}

TEST(BeamSearch, RefusesLogitsThatAreNoNumbers) {
  BeamSearch search(2, {});
  EXPECT_EQ(search.take({0.0f, std::nanf("")}).message(),
            "beam search: the logits after beam 0 have a sum of exponentials of nan, expected "
            "numbers");
}

}  // namespace
}  // namespace zg
