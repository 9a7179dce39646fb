// The collectives of ranks whose GPUs map each other's memory, on the emulated device: the suite of
// every transport; whole programs that the hosts have queued before the device begins, whose
// streams then run as far apart as they can, compared with the CPU's ranks; recorded and replayed
// programs; and the errors of a rank that does not arrive, calls another collective, or cannot map
// the others.
//
// Threads stand for processes: each opens the others' memory by handle.
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/cuda_peers.h"
#include "framework/comm/in_process.h"
#include "framework/device/cuda_device.h"
#include "tests/comm/communicator_suite.h"
#include "tests/cuda_emulation/streams.h"
#include "tests/cuda_emulation/waiting_communicator.h"

namespace zg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Clock = std::chrono::steady_clock;
constexpr double kPatience = 120;  // seconds

// One GPU for all ranks, or one each; and ranks that are threads of one process, indeed.
enum class Gpus { kShared, kOneEach, kOfOneProcess };

using PeerMain = std::function<Status(Communicator& host, Communicator& peers)>;

StatusOr<CudaPeers> Connect(Communicator& host, Gpus gpus, Device* device, double timeout_s) {
  CudaPeerOptions options;
  options.timeout_s = timeout_s;
  if (gpus != Gpus::kOfOneProcess) options.process = fmt::format("process {}", host.rank());
  return ConnectCudaPeers(device, &host, options);
}

struct Timeouts {  // in seconds
  double host = 120;
  double peers = 30;
};

Status RunOnPeers(int num_ranks, Gpus gpus, Timeouts timeouts, const PeerMain& rank_main) {
  const bool is_shared = gpus == Gpus::kShared;
  emulation::SetDevices(is_shared ? 1 : num_ranks);
  const Status status = RunRanks(num_ranks, timeouts.host, [&](Communicator& host) -> Status {
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                        OpenCudaDevice(is_shared ? 0 : host.rank()));
    ZG_ASSIGN_OR_RETURN(CudaPeers peers, Connect(host, gpus, device.get(), timeouts.peers));
    if (!peers.problem.empty()) return FailedPrecondition("{}", peers.problem);
    return rank_main(host, *peers.communicator);
  });
  emulation::EndProcesses();
  return status;
}

TransportUnderTest PeerRanks(int num_ranks, Gpus gpus) {
  const char* const names[] = {"OnOneGpu", "", "OfOneProcess"};
  return {fmt::format("Ranks{}{}", num_ranks, names[static_cast<int>(gpus)]), num_ranks,
          [num_ranks, gpus](double timeout_s, const RankMain& rank_main) {
            return RunOnPeers(num_ranks, gpus, {timeout_s, timeout_s},
                              [&](Communicator&, Communicator& peers) {
                                testing::WaitingCommunicator waiting(&peers);
                                return rank_main(waiting);
                              });
          },
          /*counts_memory_of_host=*/false,
          /*adds_pairwise=*/false};
}

INSTANTIATE_TEST_SUITE_P(CudaPeers, CommunicatorSuite,
                         ::testing::Values(PeerRanks(1, Gpus::kShared), PeerRanks(2, Gpus::kShared),
                                           PeerRanks(2, Gpus::kOneEach),
                                           PeerRanks(3, Gpus::kOfOneProcess),
                                           PeerRanks(4, Gpus::kShared)),
                         TransportName);

// Calls every collective on the results of the previous one, over all ranks and along both axes of
// a mesh of 2x2, some twice. Right after each, the rank's own work overwrites the data that others
// read. A rank that reads too early, or goes on while its data is still being read, changes the
// final results.
constexpr int64_t kPart = 1000;  // floats
constexpr int64_t kPartBytes = kPart * 4;
constexpr int64_t kBytes = 64 << 10;
constexpr ArenaOperand kA = {0, 0};
constexpr ArenaOperand kB = {16 << 10, 0};
constexpr ArenaOperand kC = {32 << 10, 0};
constexpr ArenaOperand kSum = {48 << 10, 0};

Status RunProgram(Communicator& ranks, const std::vector<Group*>& groups) {
  Device& device = ranks.device();
  std::byte* const arena = ranks.arena().data();
  const auto overwrite = [&](ArenaOperand to, ArenaOperand from, int64_t bytes) {
    return device.Copy(arena + to.offset, arena + from.offset, bytes);
  };
  for (Group* const group : groups) {
    const int64_t n = group->size();
    ZG_RETURN_IF_ERROR(
        group->ReduceScatter("gradients", kA, kSum, n * kPart, DType::kF32, /*accumulate=*/true));
    ZG_RETURN_IF_ERROR(overwrite(kA, kC, n * kPartBytes));
    ZG_RETURN_IF_ERROR(group->AllGather("parameters", kSum, kA, kPartBytes));
    ZG_RETURN_IF_ERROR(overwrite(kSum, kB, kPartBytes));
    ZG_RETURN_IF_ERROR(group->AllToAll("parts", kA, kB, kPartBytes));
    ZG_RETURN_IF_ERROR(overwrite(kA, kB, n * kPartBytes));
    for (int i = 0; i < 2; ++i) {
      ZG_RETURN_IF_ERROR(group->AllReduce("norms", kB, kB, n * kPart - 3, DType::kF32, false));
    }
    ZG_RETURN_IF_ERROR(group->AllGather("in place", {kB.offset, kPartBytes}, kB, kPartBytes));
    ZG_RETURN_IF_ERROR(overwrite(kB, kA, n * kPartBytes));
    ZG_RETURN_IF_ERROR(
        group->ReduceScatter("again", kB, {kB.offset, kPartBytes}, n * kPart, DType::kF32, false));
    ZG_RETURN_IF_ERROR(
        group->AllReduce("halves", kB, kC, kPart, {DType::kBF16, DType::kF32}, false));
    ZG_RETURN_IF_ERROR(overwrite(kC, kSum, kPartBytes));
    ZG_RETURN_IF_ERROR(group->AllReduce("losses", kC, kA, 1, DType::kF32, false));
  }
  return Status::Ok();
}

StatusOr<std::vector<Group*>> GroupsFor(Communicator& ranks) {
  std::vector<Group*> groups = {&ranks.world()};
  if (ranks.size() == 4) {
    const int rank = ranks.rank();
    ZG_ASSIGN_OR_RETURN(Group * row, ranks.GroupOf({rank / 2 * 2, rank / 2 * 2 + 1}));
    ZG_ASSIGN_OR_RETURN(Group * column, ranks.GroupOf({rank % 2 + 2, rank % 2}));
    groups.insert(groups.end(), {row, column, &ranks.world()});
  }
  return groups;
}

// The initial content of a rank's arena: numbers of every size whose sums do not grow.
std::vector<std::byte> BeginOf(int rank) {
  std::vector<float> floats(kBytes / 4);
  uint32_t state = 12345u + 977u * static_cast<uint32_t>(rank);
  for (float& value : floats) {
    state = state * 1664525u + 1013904223u;
    value = (static_cast<float>(state >> 8) - 8388608.0f) / static_cast<float>(1 << (state % 24));
  }
  std::vector<std::byte> bytes(kBytes);
  std::memcpy(bytes.data(), floats.data(), kBytes);
  return bytes;
}

using Arenas = std::vector<std::vector<std::byte>>;  // by rank

StatusOr<Arenas> OnCpu(int num_ranks, int repetitions) {
  Arenas arenas(num_ranks);
  ZG_RETURN_IF_ERROR(RunRanks(num_ranks, kPatience, [&](Communicator& ranks) -> Status {
    ZG_ASSIGN_OR_RETURN(std::byte* const arena, ranks.arena().Allocate(kBytes, 0));
    ZG_ASSIGN_OR_RETURN(const std::vector<Group*> groups, GroupsFor(ranks));
    std::memcpy(arena, BeginOf(ranks.rank()).data(), kBytes);
    for (int i = 0; i < repetitions; ++i) ZG_RETURN_IF_ERROR(RunProgram(ranks, groups));
    arenas[ranks.rank()].assign(arena, arena + kBytes);
    return Status::Ok();
  }));
  return arenas;
}

// The whole program, or its replays, are queued before the device begins.
StatusOr<Arenas> OnHeldPeers(int num_ranks, int repetitions, bool is_recorded) {
  Arenas arenas(num_ranks);
  ZG_RETURN_IF_ERROR(RunOnPeers(
      num_ranks, Gpus::kShared, {}, [&](Communicator& host, Communicator& ranks) -> Status {
        Device& device = ranks.device();
        ZG_ASSIGN_OR_RETURN(std::byte* const arena, ranks.arena().Allocate(kBytes, 0));
        ZG_ASSIGN_OR_RETURN(const std::vector<Group*> groups, GroupsFor(ranks));
        ZG_RETURN_IF_ERROR(device.Write(arena, BeginOf(ranks.rank()).data(), kBytes));
        ZG_RETURN_IF_ERROR(host.Barrier("ready"));
        if (ranks.rank() == 0) emulation::Hold();
        ZG_RETURN_IF_ERROR(host.Barrier("held"));
        std::unique_ptr<RecordedWork> recorded;
        if (is_recorded) {
          ZG_RETURN_IF_ERROR(device.BeginRecording());
          ZG_RETURN_IF_ERROR(RunProgram(ranks, groups));
          ZG_ASSIGN_OR_RETURN(recorded, device.EndRecording());
        }
        for (int i = 0; i < repetitions; ++i) {
          ZG_RETURN_IF_ERROR(is_recorded ? recorded->Replay() : RunProgram(ranks, groups));
        }
        ZG_RETURN_IF_ERROR(host.Barrier("queued"));
        if (ranks.rank() == 0) emulation::Go();
        ZG_RETURN_IF_ERROR(ranks.Synchronize());
        arenas[ranks.rank()].assign(arena, arena + kBytes);
        return Status::Ok();
      }));
  return arenas;
}

void ExpectLikeCpu(int num_ranks, int repetitions, bool is_recorded) {
  for (int order = 0; order < 3; ++order) {
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);  // the next order of threads and streams
    SCOPED_TRACE(fmt::format("{} ranks, order {}", num_ranks, order));
    const StatusOr<Arenas> expected = OnCpu(num_ranks, repetitions);
    const StatusOr<Arenas> got = OnHeldPeers(num_ranks, repetitions, is_recorded);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    for (int rank = 0; rank < num_ranks; ++rank) {
      EXPECT_TRUE((*got)[rank] == (*expected)[rank]) << "rank " << rank;
    }
  }
}

TEST(CudaPeersTest, QueuesMeetWhereverTheyAre) {
  for (const int ranks : {1, 2, 3, 4}) ExpectLikeCpu(ranks, 3, /*is_recorded=*/false);
}

TEST(CudaPeersTest, ReplaysMeetToo) {
  for (const int ranks : {1, 2, 4}) ExpectLikeCpu(ranks, 4, /*is_recorded=*/true);
}

// Two ranks call several collectives, in a recording or not; the third one does not, and is told
// about it.
void ExpectMissingRankIsNamed(bool is_recorded) {
  constexpr int kRanks = 3;
  const Clock::time_point start = Clock::now();
  const Status status = RunOnPeers(
      kRanks, Gpus::kOneEach, {kPatience, /*peers=*/0.5},
      [&](Communicator& host, Communicator& ranks) -> Status {
        Device& device = ranks.device();
        ZG_RETURN_IF_ERROR(ranks.arena().Allocate(kBytes, 0).status());
        const auto queue = [&]() -> Status {
          for (const char* const name : {"first", "second", "third"}) {
            ZG_RETURN_IF_ERROR(ranks.world().AllReduce(name, kA, kB, 1000, DType::kF32, false));
          }
          return Status::Ok();
        };
        ZG_RETURN_IF_ERROR(queue());
        std::unique_ptr<RecordedWork> recorded;
        if (is_recorded) {
          ZG_RETURN_IF_ERROR(device.BeginRecording());
          ZG_RETURN_IF_ERROR(queue());
          ZG_ASSIGN_OR_RETURN(recorded, device.EndRecording());
          ZG_RETURN_IF_ERROR(recorded->Replay());
        }
        ZG_RETURN_IF_ERROR(ranks.Synchronize());
        if (ranks.rank() == 2) {
          ZG_RETURN_IF_ERROR(host.Barrier("the others have failed"));
          const Status late = ranks.Synchronize();
          EXPECT_EQ(late.code(), StatusCode::kAborted) << late.ToString();
          EXPECT_THAT(late.message(), AllOf(HasSubstr("on rank 2: rank "), HasSubstr("failed")));
          return Status::Ok();
        }
        ZG_RETURN_IF_ERROR(is_recorded ? recorded->Replay() : queue());
        const Status missing = ranks.Synchronize();
        // The first rank to notice reports the problem; the other may report the failure of the
        // first.
        if (missing.code() == StatusCode::kDeadlineExceeded) {
          EXPECT_THAT(missing.message(),
                      AllOf(HasSubstr("all_reduce 'first' (call 1) on rank "),
                            HasSubstr("no sign of rank 2 within 0.5 s (ZG_COLLECTIVE_TIMEOUT_S); "
                                      "rank 2 is in no collective")));
        } else {
          EXPECT_EQ(missing.code(), StatusCode::kAborted) << missing.ToString();
        }
        EXPECT_FALSE(ranks.world().AllGather("later", kA, kB, 8).ok());
        // Frees memory, which waits for the queue.
        ZG_RETURN_IF_ERROR(device.Synchronize());
        return host.Barrier("the others have failed");
      });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
}

TEST(CudaPeersTest, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  ExpectMissingRankIsNamed(/*is_recorded=*/false);
}

TEST(CudaPeersTest, ARankThatDoesNotReplayIsNamedAtTheDeadline) {
  ExpectMissingRankIsNamed(/*is_recorded=*/true);
}

// The reason why ranks cannot be peers, the same on all ranks.
std::string ProblemOf(int num_ranks, const std::function<int(int rank)>& gpu_of,
                      const std::function<std::string(int rank)>& process_of) {
  std::vector<std::string> problems(num_ranks);
  const Status status = RunRanks(num_ranks, kPatience, [&](Communicator& host) -> Status {
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenCudaDevice(gpu_of(host.rank())));
    CudaPeerOptions options;
    options.timeout_s = kPatience;
    options.process = process_of(host.rank());
    ZG_ASSIGN_OR_RETURN(const CudaPeers peers, ConnectCudaPeers(device.get(), &host, options));
    problems[host.rank()] = peers.problem;
    EXPECT_EQ(peers.problem.empty(), peers.communicator != nullptr);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  emulation::EndProcesses();
  for (const std::string& problem : problems) EXPECT_EQ(problem.empty(), problems[0].empty());
  return problems[0];
}

std::string OwnProcess(int rank) { return fmt::format("process {}", rank); }

TEST(CudaPeersTest, GpusWithoutPeerAccessAreAReason) {
  emulation::SetDevices(2, /*have_peer_access=*/false);
  EXPECT_EQ(
      ProblemOf(
          2, [](int rank) { return rank; }, OwnProcess),
      "the GPU 0000:00:00.0 of rank 0 cannot map the memory of the GPU 0000:01:00.0 of rank 1");
  // Ranks may share one.
  EXPECT_EQ(ProblemOf(
                2, [](int) { return 0; }, OwnProcess),
            "");
}

TEST(CudaPeersTest, ThreadsOfOneProcessNeedAGpuEach) {
  emulation::SetDevices(2);
  const auto one_process = [](int) { return std::string("one"); };
  EXPECT_EQ(ProblemOf(
                2, [](int) { return 0; }, one_process),
            "ranks 0 and 1 are threads of one process on one GPU (0000:00:00.0)");
  EXPECT_EQ(ProblemOf(
                2, [](int rank) { return rank; }, one_process),
            "");
}

TEST(CudaPeersTest, MemoryThatCannotBeOpenedIsAReason) {
  emulation::SetDevices(1);
  emulation::FailNextIpcOpen();
  EXPECT_THAT(ProblemOf(
                  3, [](int) { return 0; }, OwnProcess),
              AllOf(HasSubstr("cannot map the flags of rank "),
                    HasSubstr("GPU 0000:00:00.0: cudaErrorInvalidValue"), HasSubstr("ipc=host")));
}

}  // namespace
}  // namespace zg
