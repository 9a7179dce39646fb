// Open MPI itself on this machine: messages, collectives, and the shared-memory windows of ranks on
// one host.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <vector>

namespace {

class MpiSmokeTest : public testing::Test {
 protected:
  MpiSmokeTest() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &num_ranks_);
  }

  int rank_ = 0;
  int num_ranks_ = 0;
};

TEST_F(MpiSmokeTest, AllGatherHasEveryRanksValue) {
  const int mine = 10 * rank_;
  std::vector<int> gathered(num_ranks_, -1);
  MPI_Allgather(&mine, 1, MPI_INT, gathered.data(), 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < num_ranks_; ++r) EXPECT_EQ(gathered[r], 10 * r);
}

TEST_F(MpiSmokeTest, LargeMessagesGoAroundARing) {
  const std::size_t num_elements = 1 << 20;
  const int next = (rank_ + 1) % num_ranks_;
  const int previous = (rank_ + num_ranks_ - 1) % num_ranks_;
  std::vector<float> buffer(num_elements, static_cast<float>(rank_));
  MPI_Sendrecv_replace(buffer.data(), static_cast<int>(num_elements), MPI_FLOAT, next, 0, previous,
                       0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(buffer.front(), static_cast<float>(previous));
  EXPECT_EQ(buffer.back(), static_cast<float>(previous));
}

TEST_F(MpiSmokeTest, PeersReadEachOthersSharedMemory) {
  const MPI_Aint local_bytes = 1 << 16;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  int* local = nullptr;
  MPI_Win window;
  MPI_Win_allocate_shared(local_bytes, sizeof(int), info, MPI_COMM_WORLD, &local, &window);
  MPI_Info_free(&info);

  local[0] = 100 + rank_;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 0; r < num_ranks_; ++r) {
    MPI_Aint bytes = 0;
    int unit_bytes = 0;
    int* peer = nullptr;
    MPI_Win_shared_query(window, r, &bytes, &unit_bytes, &peer);
    EXPECT_GE(bytes, local_bytes);
    EXPECT_EQ(peer[0], 100 + r);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
}

}  // namespace
