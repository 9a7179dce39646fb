#include "framework/job/same_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/comm/in_process.h"

namespace zg {
namespace {

// The status of each rank if rank r has text_of[r].
std::vector<Status> Compare(const std::vector<std::string>& text_of) {
  std::vector<Status> told(text_of.size());
  const Status status =
      RunRanks(static_cast<int>(text_of.size()), 10, [&](Communicator& communicator) {
        told[communicator.rank()] = CheckSameOptions(communicator, text_of[communicator.rank()]);
        return Status::Ok();
      });
  EXPECT_TRUE(status.ok()) << status.message();
  return told;
}

TEST(CheckSameOptions, EqualFlagsAreFine) {
  for (const Status& told : Compare({"seed = 1\n", "seed = 1\n", "seed = 1\n"})) {
    EXPECT_TRUE(told.ok()) << told.message();
  }
}

TEST(CheckSameOptions, EveryRankIsToldTheFirstDifference) {
  const std::string text = "steps = 5\nseed = 1\nlr = 0.1\n";
  for (const Status& told : Compare({text, text, "steps = 5\nseed = 2\nlr = 0.2\n"})) {
    EXPECT_EQ(told.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(told.message(),
              "--seed: rank 2 has '2', rank 0 has '1'; start every rank with the same flags");
  }
}

TEST(CheckSameOptions, AnEmptyValueDiffers) {
  EXPECT_EQ(Compare({"init = \n", "init = a\n"})[0].message(),
            "--init: rank 1 has 'a', rank 0 has ''; start every rank with the same flags");
}

TEST(CheckSameOptions, AnotherProgramHasOtherFlags) {
  for (const auto& texts : std::vector<std::vector<std::string>>{
           {"seed = 1\nlr = 0.1\n", "seed = 1\n"}, {"seed = 1\n", "seed = 1\nlr = 0.1\n"}}) {
    for (const Status& told : Compare(texts)) {
      EXPECT_EQ(told.message(),
                fmt::format("rank 1 is another program than rank 0: it has a flag --{} in the "
                            "place of --{}; start the same program on every rank",
                            texts[1].size() > 10 ? "lr" : "", texts[0].size() > 10 ? "lr" : ""));
    }
  }
}

}  // namespace
}  // namespace zg
