// The results of a test on each of several in-process ranks.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/in_process.h"
#include "framework/ops/register_all_ops.h"

namespace zg::testing {

// Runs `body(communicator, &result)` on every rank and returns the results, by rank.
template <typename Result, typename Body>
StatusOr<std::vector<Result>> TryOnRanks(int num_ranks, const Body& body) {
  RegisterAllOps();
  std::vector<Result> results(num_ranks);
  ZG_RETURN_IF_ERROR(RunRanks(num_ranks, [&](Communicator& communicator) -> Status {
    return body(communicator, &results[communicator.rank()]);
  }));
  return results;
}

// The same; an error fails the test.
template <typename Result, typename Body>
std::vector<Result> ResultsOnRanks(int num_ranks, const Body& body) {
  StatusOr<std::vector<Result>> results = TryOnRanks<Result>(num_ranks, body);
  EXPECT_TRUE(results.ok()) << results.status().message();
  return results.ok() ? *std::move(results) : std::vector<Result>(num_ranks);
}

}  // namespace zg::testing
