#include "framework/comm/nccl.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "framework/comm/cuda/left_fold_cuda.h"
#include "framework/comm/cuda/nccl_lazy.h"
#include "framework/comm/cuda/poll_pause.h"
#include "framework/comm/ordered_group.h"
#include "framework/device/cuda/cuda_status.h"
#include "framework/device/cuda_support.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxChunkBytes = int64_t{4} << 20;

// The time for NCCL to end after an error, before the process does.
constexpr std::chrono::seconds kAbortPatience(5);

ncclDataType_t NcclType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF16:
      return ncclFloat16;
    case DType::kI64:
      return ncclInt64;
    default:
      ZG_CHECK(false, "no sum over ranks in {}", DTypeName(dtype));
  }
}

// An id of the calling thread's GPU: unique in the world.
StatusOr<std::string> GpuId() {
  int index = 0;
  ZG_RETURN_IF_CUDA_ERROR(cudaGetDevice(&index));
  char bus_id[64] = {};
  ZG_RETURN_IF_CUDA_ERROR(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), index));
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return fmt::format("{} of {}", bus_id, host);
}

// The common state of a rank's groups: NCCL's communicators and the work queued for them. An error
// of one ends all.
class NcclQueue {
 public:
  NcclQueue(Device* device, int rank, const NcclOptions& options)
      : device_(*device), rank_(rank), options_(options) {}

  ~NcclQueue() {
    for (auto comm = comms_.rbegin(); comm != comms_.rend(); ++comm) {
      if (Await(*comm, ncclCommFinalize(*comm), "leaving NCCL").ok()) ncclCommDestroy(*comm);
      if (comms_.empty()) break;  // this one failed
    }
    if (aborted_.valid()) aborted_.wait_for(kAbortPatience);
  }

  const NcclOptions& options() const { return options_; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream()); }

  // Takes ownership of a communicator that NCCL is still creating.
  StatusOr<ncclComm_t> Adopt(ncclComm_t comm, ncclResult_t result, std::string_view what) {
    if (comm != nullptr) comms_.push_back(comm);
    ZG_RETURN_IF_ERROR(Await(comm, result, what));
    return comm;
  }

  Status Synchronize() {
    if (end_ == nullptr) {
      ZG_ASSIGN_OR_RETURN(end_, device_.MakeEvent());
    }
    ZG_RETURN_IF_ERROR(device_.JoinQueues());
    ZG_RETURN_IF_ERROR(end_->Record());
    ZG_RETURN_IF_ERROR(WaitFor(*end_));
    num_pending_ = num_done_ = 0;
    return Status::Ok();
  }

  // Waits until the event is done, or names the first collective that did not complete.
  Status WaitFor(DeviceEvent& event) {
    Clock::time_point progress = Clock::now();
    const PollPause pause;
    while (true) {
      ZG_ASSIGN_OR_RETURN(const bool is_done, event.IsDone());
      if (is_done) return Status::Ok();
      while (num_done_ < num_pending_) {
        ZG_ASSIGN_OR_RETURN(const bool got_through, pending_[num_done_].event->IsDone());
        if (!got_through) break;
        ++num_done_;
        progress = Clock::now();
      }
      const std::string where =
          num_done_ < num_pending_ ? pending_[num_done_].name : "the work of the step";
      for (const ncclComm_t comm : comms_) {
        ncclResult_t result = ncclSuccess;
        ncclCommGetAsyncError(comm, &result);
        if (result != ncclSuccess && result != ncclInProgress) {
          return Fail(NcclStatus(comm, result, where));
        }
      }
      if (Clock::now() - progress > std::chrono::duration<double>(options_.timeout_s)) {
        return Fail(DeadlineExceeded(
            "{} on rank {}: no progress for {} s; another rank does not take part, or the network "
            "between the GPUs is stuck",
            where, rank_, options_.timeout_s));
      }
      pause();
    }
  }

  // Records that the collective `name` is queued.
  Status Queued(std::string_view operation, std::string_view name) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    ZG_RETURN_IF_CUDA_ERROR(cudaStreamIsCapturing(stream(), &capture));
    if (capture != cudaStreamCaptureStatusNone) return Status::Ok();  // the work is only recorded
    if (num_pending_ == pending_.size()) {
      ZG_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> event, device_.MakeEvent());
      pending_.push_back({"", std::move(event)});
    }
    Pending& pending = pending_[num_pending_++];
    pending.name = fmt::format("{} '{}'", operation, name);
    return pending.event->Record();
  }

  Status NcclStatus(ncclComm_t comm, ncclResult_t result, std::string_view what) const {
    if (result == ncclSuccess || result == ncclInProgress) return Status::Ok();
    return FailedPrecondition("{} on rank {}: NCCL: {} ({})", what, rank_,
                              ncclGetErrorString(result), ncclGetLastError(comm));
  }

  // Call after a call inside a group, which ends with an Await.
  Status Accept(ncclComm_t comm, ncclResult_t result, std::string_view what) {
    const Status status = NcclStatus(comm, result, what);
    return status.ok() ? status : Fail(status);
  }

  // Call after a non-blocking call: waits until NCCL has processed it.
  Status Await(ncclComm_t comm, ncclResult_t result, std::string_view what) {
    const Clock::time_point begin = Clock::now();
    while (result == ncclInProgress) {
      if (Clock::now() - begin > std::chrono::duration<double>(options_.timeout_s)) {
        return Fail(DeadlineExceeded("{} on rank {}: not all ranks came within {} s", what, rank_,
                                     options_.timeout_s));
      }
      std::this_thread::yield();
      if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) result = ncclInternalError;
    }
    return Accept(comm, result, what);
  }

 private:
  struct Pending {  // a collective since the last Synchronize
    std::string name;
    std::unique_ptr<DeviceEvent> event;
  };

  // Aborts NCCL's work on the GPU, for which freeing memory would wait. This runs in a thread of
  // its own, because ncclCommAbort waits until recorded work with collectives is destroyed, which
  // comes after this error, and for ranks that may not arrive.
  Status Fail(const Status& status) {
    if (comms_.empty()) return status;
    std::promise<void> aborted;
    aborted_ = aborted.get_future();
    std::thread([comms = std::move(comms_), aborted = std::move(aborted)]() mutable {
      for (auto comm = comms.rbegin(); comm != comms.rend(); ++comm) ncclCommAbort(*comm);
      aborted.set_value();
    }).detach();
    comms_.clear();
    return status;
  }

  Device& device_;
  const int rank_;
  const NcclOptions options_;
  std::vector<ncclComm_t> comms_;  // those of groups after that of all ranks
  std::future<void> aborted_;      // of the communicators before an error

  std::unique_ptr<DeviceEvent> end_;
  std::vector<Pending> pending_;
  size_t num_pending_ = 0;
  size_t num_done_ = 0;  // number of pending ones that are done
};

class NcclGroup : public OrderedGroup {
 public:
  NcclGroup(std::vector<int> ranks, int job_rank, ncclComm_t comm, NcclQueue* queue,
            const OrderedArena* arena, TrafficMeter* traffic)
      : OrderedGroup(std::move(ranks), job_rank, arena, traffic), comm_(comm), queue_(*queue) {}

 protected:
  Status SendAndReceive(const std::vector<Message>& sent,
                        const std::vector<Message>& received) override {
    if (sent.empty() && received.empty()) return Status::Ok();
    ZG_RETURN_IF_ERROR(queue_.Accept(comm_, ncclGroupStart(), "ncclGroupStart"));
    for (const Message& message : received) {
      ZG_RETURN_IF_ERROR(queue_.Accept(
          comm_,
          ncclRecv(message.data, message.bytes, ncclInt8, message.peer, comm_, queue_.stream()),
          "ncclRecv"));
    }
    for (const Message& message : sent) {
      ZG_RETURN_IF_ERROR(queue_.Accept(
          comm_,
          ncclSend(message.data, message.bytes, ncclInt8, message.peer, comm_, queue_.stream()),
          "ncclSend"));
    }
    return queue_.Await(comm_, ncclGroupEnd(), "ncclGroupEnd");
  }

  Status Fold(ReductionTypes types, const FoldInputs& inputs, int64_t elements,
              std::byte* output) override {
    return LeftFoldOnCuda(types, inputs, elements, output, queue_.stream());
  }

  Status GatherEqualParts(const std::byte* own, int64_t part_bytes, std::byte* output) override {
    if (part_bytes == 0) return Status::Ok();
    return queue_.Await(comm_,
                        ncclAllGather(own, output, part_bytes, ncclInt8, comm_, queue_.stream()),
                        "ncclAllGather");
  }

  bool HasOwnSums(ReductionTypes types, bool accumulate) const override {
    return queue_.options().own_sums && !accumulate && types.terms == types.sum;
  }
  Status OwnReduceScatter(const std::byte* input, std::byte* output, int64_t elements,
                          DType dtype) override {
    return queue_.Await(comm_,
                        ncclReduceScatter(input, output, elements / size(), NcclType(dtype),
                                          ncclSum, comm_, queue_.stream()),
                        "ncclReduceScatter");
  }
  Status OwnAllReduce(const std::byte* input, std::byte* output, int64_t elements,
                      DType dtype) override {
    return queue_.Await(
        comm_,
        ncclAllReduce(input, output, elements, NcclType(dtype), ncclSum, comm_, queue_.stream()),
        "ncclAllReduce");
  }

  Status Queued(std::string_view operation, std::string_view name) override {
    return queue_.Queued(operation, name);
  }

 private:
  const ncclComm_t comm_;
  NcclQueue& queue_;
};

ncclConfig_t NonBlockingConfig() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that a missing peer is an error and not a hang
  return config;
}

class NcclCommunicator : public OrderedCommunicator {
 public:
  NcclCommunicator(Device* device, ControlPlane* control, const NcclOptions& options)
      : OrderedCommunicator(device, control, kMaxChunkBytes),
        queue_(device, control->rank(), options) {}
  ~NcclCommunicator() override { ReleaseGroups(); }

  Status Connect() {
    const StatusOr<bool> is_shared = IsGpuSharedForTest();
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "read the environment", is_shared.status()));
    // Must be set before NCCL reads it: each rank is presented to NCCL as a host of its own.
    if (*is_shared) setenv("NCCL_HOSTID", fmt::format("zerograph rank {}", rank()).c_str(), 1);
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "load NCCL", LoadNccl()));
    const StatusOr<std::string> gpu = GpuId();
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "identify the GPU", gpu.status()));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> gpus,
                        control().Exchange("GPUs of the ranks", *gpu));
    if (!*is_shared) ZG_RETURN_IF_ERROR(CheckOneRankPerGpu(gpus));

    ncclUniqueId id = {};
    Status status;
    if (rank() == 0) status = queue_.NcclStatus(nullptr, ncclGetUniqueId(&id), "ncclGetUniqueId");
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "start NCCL", status));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                        control().Exchange("NCCL's id", std::string(id.internal, sizeof(id))));
    std::memcpy(&id, ids[0].data(), sizeof(id));
    ncclConfig_t config = NonBlockingConfig();
    ncclComm_t comm = nullptr;
    const ncclResult_t result = ncclCommInitRankConfig(&comm, size(), id, rank(), &config);
    const StatusOr<ncclComm_t> joined = queue_.Adopt(comm, result, "joining NCCL");
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "join NCCL", joined.status()));
    comm_ = *joined;
    world_ = std::make_unique<NcclGroup>(AllRanks(size()), rank(), comm_, &queue_, &ordered_arena(),
                                         &traffic_meter());
    return Status::Ok();
  }

  StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    return MakeNcclCommunicator(&arena().device(), &control(), queue_.options());
  }

  std::string_view transport() const override { return "NCCL"; }
  Group& world() override { return *world_; }
  Status Synchronize() override { return queue_.Synchronize(); }
  Status WaitFor(DeviceEvent& event) override { return queue_.WaitFor(event); }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_RETURN_IF_ERROR(control().Barrier("make groups"));
    const int color = *std::min_element(ranks.begin(), ranks.end());
    const auto key = std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin();
    ncclConfig_t config = NonBlockingConfig();
    ncclComm_t comm = nullptr;
    // When NCCL has created the group's communicator, it is also done with the communicator of all
    // ranks, which is split.
    const ncclResult_t result = ncclCommSplit(comm_, color, static_cast<int>(key), &comm, &config);
    const Status split = queue_.Await(comm_, result, "ncclCommSplit");
    const StatusOr<ncclComm_t> joined = split.ok()
                                            ? queue_.Adopt(comm, result, "joining a group of NCCL")
                                            : StatusOr<ncclComm_t>(split);
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "join a group of NCCL", joined.status()));
    return std::unique_ptr<Group>(
        new NcclGroup(ranks, rank(), *joined, &queue_, &ordered_arena(), &traffic_meter()));
  }

 private:
  NcclQueue queue_;
  ncclComm_t comm_ = nullptr;  // of all ranks
  std::unique_ptr<NcclGroup> world_;
};

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(Device* device, ControlPlane* control,
                                                             const NcclOptions& options) {
  auto communicator = std::make_unique<NcclCommunicator>(device, control, options);
  ZG_RETURN_IF_ERROR(communicator->Connect());
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace zg
