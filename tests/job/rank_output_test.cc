#include "framework/job/rank_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace zg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The text shown if `text` arrives in pieces of `piece_bytes`.
std::string Show(RankOutput& output, const std::string& text, size_t piece_bytes) {
  std::string shown;
  for (size_t begin = 0; begin < text.size(); begin += piece_bytes) {
    shown += output.Filter(RankOutput::kOutput, text.substr(begin, piece_bytes));
  }
  return shown + output.Finish(RankOutput::kOutput);
}

void ExpectShown(const std::string& text, const std::string& expected) {
  for (size_t piece_bytes : {size_t{1}, size_t{5}, size_t{16}, text.size() + 1}) {
    RankOutput output;
    EXPECT_EQ(Show(output, text, piece_bytes), expected) << "in pieces of " << piece_bytes;
  }
}

TEST(RankOutput, TakesTheTagsAway) {
  ExpectShown("", "");
  ExpectShown("[1,0]<stdout>:one\n[1,12]<stderr>:\n", "one\n\n");
  ExpectShown("[1,0]<stdout>:no end", "no end\n");
}

TEST(RankOutput, PassesWhatHasNoTag) {
  ExpectShown("a box\n[1,x]<stdout>: [1,2] [1,\n", "a box\n[1,x]<stdout>: [1,2] [1,\n");
}

TEST(RankOutput, PutsTheLinesOfEachRankTogether) {
  ExpectShown(
      "[1,0]<stdout>:par[1,1]<stdout>:one\n[1,1]<stdout>:two\n[1,0]<stdout>:tial\n"
      "[1,0]<stdout>:lo[1,0]<stdout>:ng\n",
      "one\ntwo\npartial\nlong\n");
}

TEST(RankOutput, KeepsTheLastLinesOfEachRank) {
  RankOutput output;
  for (int i = 0; i < 30; ++i) {
    output.Filter(RankOutput::kOutput, "[1,0]<stdout>:step " + std::to_string(i) + "\n");
  }
  output.Filter(RankOutput::kErrors, "[1,0]<stderr>:error\n[1,1]<stderr>:of another\nmpirun's\n");
  EXPECT_THAT(output.LastLines(0),
              ElementsAre("step 21", "step 22", "step 23", "step 24", "step 25", "step 26",
                          "step 27", "step 28", "step 29", "error"));
  EXPECT_THAT(output.LastLines(1), ElementsAre("of another"));
  EXPECT_THAT(output.LastLines(2), IsEmpty());
}

TEST(RankOutput, NoticesTheFirstRankWithAnError) {
  RankOutput output;
  output.Filter(RankOutput::kOutput, "[1,0]<stdout>:rank 0: output\n");
  output.Filter(RankOutput::kErrors, "[1,1]<stderr>:rank 12: of another\nrank 3: mpirun's\n");
  EXPECT_EQ(output.first_rank_with_error(), std::nullopt);
  output.Filter(RankOutput::kErrors,
                "[1,12]<stderr>:rank 12: data loss\n[1,0]<stderr>:rank 0: a\n");
  EXPECT_EQ(output.first_rank_with_error(), 12);
}

}  // namespace
}  // namespace zg
