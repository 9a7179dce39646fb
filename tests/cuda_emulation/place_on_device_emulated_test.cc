// How the ranks of a job on emulated GPUs choose their transport: --gpu-collectives and the
// capabilities of the GPUs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/job/job_options.h"
#include "framework/job/place_on_device.h"
#include "framework/job/start_line.h"
#include "tests/cuda_emulation/streams.h"

namespace zg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The transport of two ranks and the reason, as in a job's first log line, or the error. Ranks take
// the GPUs in turn; they are threads of one process, which need one GPU each.
std::string TransportOf(const JobOptions& options, int num_gpus, bool have_peer_access) {
  emulation::SetDevices(num_gpus, have_peer_access);
  std::vector<std::string> lines(2);
  const Status status = RunRanks(2, [&](Communicator& host) -> Status {
    ZG_ASSIGN_OR_RETURN(const RankOnDevice rank, PlaceOnDevice(options, &host));
    ZG_ASSIGN_OR_RETURN(const std::string line,
                        StartLine(options, *rank.communicator, rank.transport_reason));
    lines[host.rank()] = line.substr(line.find("transport: "));
    return Status::Ok();
  });
  emulation::EndProcesses();
  EXPECT_EQ(lines[0], lines[1]);
  return status.ok() ? lines[0] : status.message();
}

JobOptions OnGpus(const std::string& collectives) {
  JobOptions options;
  options.device = "cuda";
  options.gpu_collectives = collectives;
  return options;
}

TEST(PlaceOnDeviceTest, PeerMemoryWhereGpusCanMapIt) {
  EXPECT_EQ(TransportOf(OnGpus("auto"), 2, true),
            "transport: peer memory (every rank can map the memory of every GPU)");
  EXPECT_EQ(TransportOf(OnGpus("peer"), 2, true),
            "transport: peer memory (--gpu-collectives peer)");
}

TEST(PlaceOnDeviceTest, NcclWhereTheyCannot) {
  // The reason for NCCL comes before its error.
  EXPECT_THAT(
      TransportOf(OnGpus("auto"), 2, false),
      AllOf(HasSubstr("no peer memory: the GPU 0000:00:00.0 of rank 0 cannot map the memory "
                      "of the GPU 0000:01:00.0 of rank 1: "),
            HasSubstr("`gpu_collectives=nccl`: this program was built without NCCL")));
  EXPECT_THAT(TransportOf(OnGpus("auto"), 1, true),
              AllOf(HasSubstr("no peer memory: ranks 0 and 1 are threads of one process on one GPU "
                              "(0000:00:00.0): "),
                    HasSubstr("`gpu_collectives=nccl`: this program was built without NCCL")));
}

TEST(PlaceOnDeviceTest, WhatIsAskedForAndCannotBeIsAnError) {
  EXPECT_THAT(TransportOf(OnGpus("peer"), 2, false),
              AllOf(HasSubstr("`gpu_collectives=peer`: the GPU 0000:00:00.0 of rank 0 cannot map"),
                    HasSubstr("use `gpu_collectives=nccl`, or `gpu_collectives=host`")));
}

TEST(PlaceOnDeviceTest, ThroughTheHostAnywhere) {
  EXPECT_EQ(TransportOf(OnGpus("host"), 1, false),
            "transport: host memory, shared memory (--gpu-collectives host)");
}

// NCCL's own sums are requested.
TEST(PlaceOnDeviceTest, FastReduceIsForNccl) {
  JobOptions options = OnGpus("auto");
  options.fast_reduce = true;
  EXPECT_THAT(TransportOf(options, 2, true),
              HasSubstr("`gpu_collectives=nccl`: this program was built without NCCL"));
}

}  // namespace
}  // namespace zg
