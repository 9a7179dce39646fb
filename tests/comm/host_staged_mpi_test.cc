// Ranks on devices of several processes, through the host, over both transports.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "framework/comm/host_staged.h"
#include "framework/comm/mpi_communicator.h"
#include "tests/testing/fake_device.h"

namespace zg {
namespace {

constexpr int64_t kPart = 300'001;

// Integers, so that every order of addition gives the same sum; other tests check the order.
float ContributionOf(int rank, int64_t element) {
  return static_cast<float>((element % 1000) * (rank + 1));
}

Status SumAndGather(Communicator& host) {
  zg::testing::FakeDevice device;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> staged,
                      MakeHostStagedCommunicator(&device, &host));
  const int ranks = host.size();
  const int64_t elements = ranks * kPart;
  const int64_t part_bytes = kPart * 4;
  ZG_ASSIGN_OR_RETURN(std::byte* const arena,
                      staged->arena().Allocate((ranks + 1) * part_bytes, 0));
  std::vector<float> values(elements);
  for (int64_t i = 0; i < elements; ++i) values[i] = ContributionOf(host.rank(), i);
  ZG_RETURN_IF_ERROR(device.Write(arena, values.data(), ranks * part_bytes));
  const ArenaOperand sums = {ranks * part_bytes, 0};
  ZG_RETURN_IF_ERROR(
      staged->world().ReduceScatter("sum", {0, 0}, sums, elements, DType::kF32, false));
  ZG_RETURN_IF_ERROR(staged->world().AllGather("gather", sums, {0, 0}, part_bytes));
  std::vector<std::byte> scratch;
  ZG_ASSIGN_OR_RETURN(const std::byte* const bytes,
                      device.Read(arena, ranks * part_bytes, &scratch));
  std::memcpy(values.data(), bytes, ranks * part_bytes);
  for (int64_t i = 0; i < elements; ++i) {
    float expected = 0;
    for (int rank = 0; rank < ranks; ++rank) expected += ContributionOf(rank, i);
    if (values[i] == expected) continue;
    return InvalidArgument("element {} is {}, expected {}", i, values[i], expected);
  }
  return host.Barrier("done");
}

TEST(HostStagedMpiTest, SumAndGatherOverBothTransports) {
  for (const CommTransport transport : {CommTransport::kShared, CommTransport::kMessages}) {
    SCOPED_TRACE(CommTransportName(transport));
    StatusOr<std::unique_ptr<Communicator>> host = MakeMpiCommunicator({transport, 60});
    ASSERT_TRUE(host.ok()) << host.status().message();
    const Status status = SumAndGather(**host);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace
}  // namespace zg
