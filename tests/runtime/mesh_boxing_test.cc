#include "tests/runtime/mesh_boxing.h"

#include <gtest/gtest.h>

#include "framework/comm/in_process.h"

namespace zg::testing {
namespace {

void ExpectOnMesh(const Mesh& mesh) {
  const Status status = RunRanks(mesh.num_ranks(), 120, [&](Communicator& communicator) {
    return CheckBoxing(communicator, mesh);
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(MeshBoxingTest, OneAxisOfTwo) {
  ExpectOnMesh(Mesh({{"data", 2}, {"tensor", 2}}));
  ExpectOnMesh(Mesh({{"data", 2}, {"tensor", 3}}));
  ExpectOnMesh(Mesh({{"data", 3}, {"tensor", 2}}));
}

TEST(MeshBoxingTest, OneAxisOfThree) {
  ExpectOnMesh(Mesh({{"data", 2}, {"tensor", 2}, {"pipeline", 2}}));
}

TEST(MeshBoxingTest, OneAxisBesideOneOfOneRank) {
  ExpectOnMesh(Mesh({{"data", 1}, {"tensor", 3}}));
  ExpectOnMesh(Mesh({{"data", 3}, {"tensor", 1}}));
}

TEST(MeshBoxingTest, TheTableIsWhole) {
  EXPECT_EQ(NumChangesOfPlacement(Mesh({{"data", 2}, {"tensor", 2}})), 16 * 16);
}

}  // namespace
}  // namespace zg::testing
