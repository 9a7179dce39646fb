// The table of other programs' names.

#include "tools/checkpoint/foreign_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace zg::checkpoint_tool {
namespace {

// A name of either side matches exactly one rule, and maps to the other side's name and back.
TEST(ForeignNames, EveryNameGoesThereAndBack) {
  for (const ForeignFormat& format : ForeignFormats()) {
    for (const NameRule& rule : format.rules) {
      SCOPED_TRACE(rule.ours);
      EXPECT_EQ(rule.ours.find('*') == rule.ours.npos, rule.theirs.find('*') == rule.theirs.npos);
      EXPECT_LT(std::count(rule.ours.begin(), rule.ours.end(), '*'), 2);
      for (const Side side : {Side::kOurs, Side::kTheirs}) {
        for (const int number : {0, 7, 123}) {
          const std::string name = FillPattern(NameOn(side, rule), number);
          int num_matches = 0;
          for (const NameRule& other : format.rules) {
            const std::optional<int> match = MatchPattern(NameOn(side, other), name);
            if (!match) continue;
            ++num_matches;
            EXPECT_EQ(&other, &rule);
            EXPECT_EQ(FillPattern(NameOn(side, other), *match), name);
          }
          EXPECT_EQ(num_matches, 1) << name;
          for (const std::string_view skipped : format.skipped) {
            EXPECT_FALSE(side == Side::kTheirs && MatchPattern(skipped, name)) << name;
          }
        }
      }
      const auto dims = std::count(rule.shape.begin(), rule.shape.end(), ' ') + 1;
      EXPECT_TRUE(!rule.is_transposed || dims == 2);
    }
  }
}

TEST(ForeignNames, FourWeightsOfGpt2AreTransposed) {
  const StatusOr<const ForeignFormat*> gpt2 = FindForeignFormat("gpt2");
  ASSERT_TRUE(gpt2.ok());
  std::set<std::string_view> transposed;
  for (const NameRule& rule : (*gpt2)->rules) {
    if (rule.is_transposed) transposed.insert(rule.theirs);
  }
  EXPECT_EQ(transposed,
            (std::set<std::string_view>{"h.*.attn.c_attn.weight", "h.*.attn.c_proj.weight",
                                        "h.*.mlp.c_fc.weight", "h.*.mlp.c_proj.weight"}));
}

TEST(ForeignNames, ANumberIsDigitsAlone) {
  EXPECT_EQ(MatchPattern("h.*.bias", "h.12.bias"), 12);
  EXPECT_EQ(MatchPattern("*.bias", "0.bias"), 0);
  EXPECT_EQ(MatchPattern("wte.weight", "wte.weight"), -1);
  for (const char* name : {"h..bias", "h.-1.bias", "h.+1.bias", "h.01.bias", "h.1.2.bias",
                           "h.1 .bias", "h.1234567.bias", "h.1.bia", "x.1.bias", "", "h.1.biass",
                           "h.0x1.bias", ".bias", "h.bias"}) {
    EXPECT_EQ(MatchPattern("h.*.bias", name), std::nullopt) << name;
  }
}

TEST(ForeignNames, AnUnknownFormatIsToldTheOthers) {
  EXPECT_EQ(FindForeignFormat("llama").status().message(),
            "format: got 'llama', expected one of gpt2, sequential, classifier");
}

}  // namespace
}  // namespace zg::checkpoint_tool
