// The main function of tests that run under mpirun (see tools/mpi_test.bzl).
//
// A broken environment is a failure, never a skipped test, and the first failing test of any rank
// ends the whole job: the other ranks would otherwise wait for it in a collective for ever.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace {

int WorldRank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

[[noreturn]] void EndJob() {
  std::fflush(stdout);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// Aborts after a test that failed, once its messages are printed.
class EndJobOnFailure : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    std::fprintf(stderr, "rank %d: %s.%s failed; ending the job on all ranks\n", WorldRank(),
                 test.test_suite_name(), test.name());
    EndJob();
  }
};

// The output of ranks other than 0: only failures.
class FailurePrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("%s:%d: Failure\n%s\n", result.file_name() ? result.file_name() : "(unknown file)",
                result.line_number(), result.message());
  }
};

void CheckNumRanks() {
  int num_ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  const char* expected = std::getenv("ZG_EXPECTED_RANKS");
  if (expected == nullptr || std::atoi(expected) != num_ranks) {
    std::fprintf(stderr,
                 "rank %d: MPI_COMM_WORLD has %d ranks, ZG_EXPECTED_RANKS is %s; start this "
                 "program with tools/mpi_test.sh RANKS PROGRAM\n",
                 WorldRank(), num_ranks, expected == nullptr ? "not set" : expected);
    EndJob();
  }
}

}  // namespace

int main(int argc, char** argv) {
  int thread_level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &thread_level);
  CheckNumRanks();
  if (thread_level != MPI_THREAD_MULTIPLE) {
    std::fprintf(stderr, "rank %d: MPI gives thread level %d, the tests need MPI_THREAD_MULTIPLE\n",
                 WorldRank(), thread_level);
    EndJob();
  }

  // All ranks share its path, and each would complain that another has removed it.
  if (WorldRank() != 0) unsetenv("TEST_PREMATURE_EXIT_FILE");
  testing::InitGoogleTest(&argc, argv);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (WorldRank() != 0) {
    // Rank 0 alone prints progress and writes the XML file, whose path all ranks share.
    delete listeners.Release(listeners.default_xml_generator());
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  listeners.Append(new EndJobOnFailure);

  const int result = RUN_ALL_TESTS();
  if (result != 0) EndJob();  // A failure outside any test, such as in a global environment.
  MPI_Finalize();
  return 0;
}
