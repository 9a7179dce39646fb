// A job whose last rank misbehaves; mpi_failure_test.sh runs it and checks its output.

#include <cstdio>
#include <string>
#include <thread>

#include "framework/comm/mpi_communicator.h"

namespace zg {
namespace {

Status RunJob(const std::string& what, Communicator& communicator) {
  ZG_RETURN_IF_ERROR(
      communicator.arena().Allocate(4096 + communicator.arena().workspace_bytes(), 4096).status());
  ZG_RETURN_IF_ERROR(
      communicator.world().AllReduce("step 1", {0, 0}, {0, 0}, 64, DType::kF32, false));
  if (communicator.rank() == communicator.size() - 1) {
    if (what == "error") return DataLoss("train.bin: truncated at byte 1000");
    if (what == "late") std::this_thread::sleep_for(std::chrono::seconds(60));
    if (what == "crash") __builtin_trap();
    if (what == "cause") {  // as Job does: the others are in another call, and notice that first
      const Status cause = DataLoss("train.bin: truncated at byte 2000");
      (void)communicator.Exchange("compare errors", cause.ToString());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return cause;
    }
    if (what == "other") {
      return communicator.world().AllGather("step 2 weights", {0, 64}, {0, 0}, 64);
    }
  }
  return communicator.world().AllReduce("step 2", {0, 0}, {0, 0}, 64, DType::kF32, false);
}

int Main(const std::string& what) {
  const auto session = MpiSession::Start();
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", session.status().ToString().c_str());
    return 2;
  }
  const auto communicator = MakeMpiCommunicator();
  if (!communicator.ok()) {
    std::fprintf(stderr, "%s\n", communicator.status().ToString().c_str());
    return 2;
  }
  const Status status = RunJob(what, **communicator);
  if (!status.ok()) (*communicator)->Abort(status);
  std::printf("rank %d is done\n", (*communicator)->rank());
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc > 1 ? argv[1] : "nothing"); }
