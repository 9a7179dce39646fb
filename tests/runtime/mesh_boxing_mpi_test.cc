// The meshes for the given number of ranks, over mapped memory and over messages.

#include <gtest/gtest.h>
#include <mpi.h>

#include "framework/comm/mpi_communicator.h"
#include "tests/runtime/mesh_boxing.h"

namespace zg::testing {
namespace {

std::vector<Mesh> MeshesOfAllRanks() {
  int num_ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  std::vector<Mesh> meshes;
  for (const Mesh& mesh :
       {Mesh({{"data", 2}, {"tensor", 2}}), Mesh({{"data", 2}, {"tensor", 3}}),
        Mesh({{"data", 3}, {"tensor", 2}}), Mesh({{"data", 2}, {"tensor", 2}, {"pipeline", 2}})}) {
    if (mesh.num_ranks() == num_ranks) meshes.push_back(mesh);
  }
  return meshes;
}

void ExpectOver(CommTransport transport) {
  ASSERT_FALSE(MeshesOfAllRanks().empty());
  for (const Mesh& mesh : MeshesOfAllRanks()) {
    MpiOptions options;
    options.transport = transport;
    options.timeout_s = 120;
    const auto communicator = MakeMpiCommunicator(options);
    ASSERT_TRUE(communicator.ok()) << communicator.status().ToString();
    const Status status = CheckBoxing(**communicator, mesh);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(MeshBoxingMpiTest, SharedMemory) { ExpectOver(CommTransport::kShared); }
TEST(MeshBoxingMpiTest, Messages) { ExpectOver(CommTransport::kMessages); }

}  // namespace
}  // namespace zg::testing
