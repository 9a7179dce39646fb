#include "framework/comm/mpi_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/mpi_calls.h"
#include "tests/comm/communicator_suite.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

int NumRanks() {
  const char* ranks = std::getenv("ZG_EXPECTED_RANKS");  // MPI is not initialised yet.
  return ranks == nullptr ? 1 : std::atoi(ranks);
}

TransportUnderTest MpiRanks(CommTransport transport, const std::vector<int>& hosts = {}) {
  TransportUnderTest ranks;
  ranks.name = std::string(CommTransportName(transport)) + (hosts.empty() ? "" : "_in_pairs");
  ranks.num_ranks = NumRanks();
  ranks.is_on_one_host = hosts.empty();
  ranks.run = [transport, hosts](double timeout_s, const RankMain& rank_main) -> Status {
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator,
                        MakeMpiCommunicator({transport, timeout_s, hosts}));
    const Status status = rank_main(*communicator);
    // In a deadline test some ranks may end long before others.
    MPI_Barrier(MPI_COMM_WORLD);
    return status;
  };
  return ranks;
}

// As if every two neighbours were on a host of their own.
std::vector<int> HostsOfPairs() {
  std::vector<int> hosts;
  for (int rank = 0; rank < NumRanks(); ++rank) hosts.push_back(rank / 2);
  return hosts;
}

INSTANTIATE_TEST_SUITE_P(Mpi, CommunicatorSuite,
                         testing::Values(MpiRanks(CommTransport::kShared),
                                         MpiRanks(CommTransport::kMessages),
                                         MpiRanks(CommTransport::kMessages, HostsOfPairs())),
                         TransportName);

class MpiCommunicatorTest : public testing::Test {
 protected:
  MpiCommunicatorTest() { MPI_Comm_rank(MPI_COMM_WORLD, &rank_); }
  ~MpiCommunicatorTest() override { unsetenv("ZG_COMM"); }
  int rank_ = 0;
};

TEST_F(MpiCommunicatorTest, OnOneHostThereIsNoWorkspace) {
  const auto communicator = MakeMpiCommunicator();
  ASSERT_TRUE(communicator.ok()) << communicator.status().ToString();
  EXPECT_EQ((*communicator)->arena().workspace_bytes(), 0);
}

TEST_F(MpiCommunicatorTest, MessagesNeedAFewChunksPerPeer) {
  setenv("ZG_COMM", "messages", 1);
  const auto communicator = MakeMpiCommunicator();
  ASSERT_TRUE(communicator.ok()) << communicator.status().ToString();
  EXPECT_EQ((*communicator)->arena().workspace_bytes(), (NumRanks() - 1) * 8 * (60 << 10));
  EXPECT_THAT((*communicator)->arena().Allocate(4096, 4096).status().ToString(),
              NumRanks() == 1 ? HasSubstr("ok") : HasSubstr("is not in the arena of 4096 bytes"));
}

TEST_F(MpiCommunicatorTest, ARankThatHasNoStringForTheOthersIsNamed) {
  const int last = NumRanks() - 1;
  StatusOr<MpiComm> comm = MpiComm::Duplicate(MPI_COMM_WORLD);
  ASSERT_TRUE(comm.ok()) << comm.status().ToString();
  if (rank_ != last) {
    EXPECT_EQ(
        GatherStrings(comm->get(), "text", "names", 0.2).status().message(),
        fmt::format("names: no sign of rank {} within 0.2 s (ZG_COLLECTIVE_TIMEOUT_S)", last));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(MpiCommunicatorTest, ABadVariableOnOneRankIsAnErrorOnAll) {
  const int last = NumRanks() - 1;
  if (rank_ == last) setenv("ZG_COMM", "carrier pigeon", 1);
  const auto communicator = MakeMpiCommunicator();
  ASSERT_FALSE(communicator.ok());
  EXPECT_THAT(communicator.status().message(),
              HasSubstr("environment variable ZG_COMM is 'carrier pigeon'"));
  if (rank_ != last) {
    EXPECT_THAT(communicator.status().message(), HasSubstr(fmt::format("rank {} failed", last)));
  }
}

TEST_F(MpiCommunicatorTest, DifferentTransportsAreAnErrorOnAll) {
  if (NumRanks() == 1) return;  // no other rank to disagree with
  setenv("ZG_COMM", rank_ == 1 ? "messages" : "auto", 1);
  const auto communicator = MakeMpiCommunicator();
  ASSERT_FALSE(communicator.ok());
  EXPECT_THAT(communicator.status().message(),
              HasSubstr("the ranks disagree on the transport: auto on rank 0, messages on rank 1"));
}

TEST_F(MpiCommunicatorTest, PeersArenasAreCountedWhereTheyAreRead) {
  const auto communicator = MakeMpiCommunicator({CommTransport::kShared, 120});
  ASSERT_TRUE(communicator.ok()) << communicator.status().ToString();
  Communicator& comm = **communicator;
  const int64_t part = 1 << 20;
  const int64_t bytes = part * comm.size();
  ASSERT_TRUE(comm.arena().Allocate(bytes, 0).ok());
  const int64_t before = comm.arena().peer_resident_bytes();
  EXPECT_LE(before, (comm.size() - 1) * (int64_t{64} << 10));  // the page with the token
  ASSERT_TRUE(comm.world().AllGather("parameters", {0, part}, {0, 0}, part).ok());
  const int64_t after = comm.arena().peer_resident_bytes();
  EXPECT_GE(after, (comm.size() - 1) * part);
  EXPECT_LE(after, (comm.size() - 1) * (bytes + 4096));
}

TEST_F(MpiCommunicatorTest, AnMpiSessionLeavesTheMpiOfOthersAlone) {
  {
    const auto session = MpiSession::Start();
    ASSERT_TRUE(session.ok()) << session.status().ToString();
  }
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  EXPECT_EQ(is_finalized, 0);
}

}  // namespace
}  // namespace zg
