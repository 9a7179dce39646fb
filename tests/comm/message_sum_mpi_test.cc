// Sums that are passed from host to host, that start on one and come back to their owner: each has the
// bits of the left fold, and each rank receives the bytes of its plan.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "framework/comm/mpi_communicator.h"
#include "framework/comm/sum_plan.h"
#include "tests/comm/collective_checks.h"

namespace zg {
namespace {

int64_t ReduceScatterBytes(const Communicator& communicator) {
  return communicator.traffic()[static_cast<int>(CollectiveKind::kReduceScatter)].bytes;
}

Status CheckSums(Communicator& communicator, const std::vector<int>& hosts, int64_t part) {
  const int num_ranks = communicator.size();
  std::vector<int> order(num_ranks);
  std::iota(order.begin(), order.end(), 0);
  for (const bool accumulate : {false, true}) {
    const int64_t before = ReduceScatterBytes(communicator);
    ZG_RETURN_IF_ERROR(TestReduceScatter(communicator, part, !accumulate, accumulate));
    const SumBytes bytes = SumBytesOf(DType::kF32, accumulate);
    EXPECT_EQ(ReduceScatterBytes(communicator) - before,
              PlanSum(hosts, order, communicator.rank(), bytes)
                  .ReceivedBytes(communicator.rank(), {part * num_ranks, part}, bytes));
    ZG_RETURN_IF_ERROR(TestWholeNumbers(communicator, part, accumulate));
  }
  ZG_RETURN_IF_ERROR(TestAllReduce(communicator, part * num_ranks - 1, true, false));
  std::reverse(order.begin(), order.end());
  return TestGroup(communicator, order);
}

TEST(MessageSum, GoesAlongHosts) {
  int num_ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  ASSERT_EQ(num_ranks, 6);
  const std::vector<int> hosts = {0, 0, 0, 1, 1, 1};
  ASSERT_TRUE(LessensBytesBetweenHosts(hosts, SumBytesOf(DType::kF32, true)));
  const auto communicator = MakeMpiCommunicator({CommTransport::kMessages, 120, hosts});
  ASSERT_TRUE(communicator.ok()) << communicator.status().ToString();
  for (const int64_t part : {4096, 140001}) {
    const Status status = CheckSums(**communicator, hosts, part);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

}  // namespace
}  // namespace zg
