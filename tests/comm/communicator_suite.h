// The tests that every transport must pass. A transport's test program instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorSuite, testing::Values(...), TransportName);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"

namespace zg {

using RankMain = std::function<Status(Communicator&)>;

struct TransportUnderTest {
  std::string name;  // letters, digits, underscores
  int num_ranks = 0;
  // Runs the function on a new communicator for each rank of this process, and returns the first
  // error.
  std::function<Status(double timeout_s, const RankMain&)> run;
  bool counts_memory_of_host = true;  // for the arenas of all its ranks, before it allocates them
  bool adds_pairwise = true;          // else such a sum is an error
  bool is_on_one_host = true;         // as far as it knows
};

class CommunicatorSuite : public testing::TestWithParam<TransportUnderTest> {
 protected:
  int num_ranks() const { return GetParam().num_ranks; }
  // Expects success on every rank.
  void Run(const RankMain& rank_main, double timeout_s = 120) const;
};

// Whether an error has this code and all of these texts in its message.
Status ExpectFailure(const Status& got, StatusCode code, const std::vector<std::string>& texts);

std::string TransportName(const testing::TestParamInfo<TransportUnderTest>& info);

}  // namespace zg
