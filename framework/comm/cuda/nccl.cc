#include "framework/comm/nccl.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "framework/comm/cuda/left_fold_cuda.h"
#include "framework/comm/cuda/nccl_lazy.h"
#include "framework/comm/ordered_collectives.h"
#include "framework/device/cuda/cuda_status.h"
#include "framework/device/cuda_support.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxChunkBytes = int64_t{4} << 20;

// A queue is asked this often whether it is done, and NCCL whether something went wrong.
constexpr std::chrono::microseconds kPollEvery(20);

// For NCCL to end after an error, before the process does.
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

// Of the GPU that the calling thread uses: one string for each GPU of the world.
StatusOr<std::string> GpuId() {
  int index = 0;
  ZG_RETURN_IF_CUDA_ERROR(cudaGetDevice(&index));
  char bus_id[64] = {};
  ZG_RETURN_IF_CUDA_ERROR(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), index));
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return fmt::format("{} of {}", bus_id, host);
}

class NcclCommunicator : public OrderedCollectives {
 public:
  NcclCommunicator(Device* device, Communicator* control, const NcclOptions& options)
      : OrderedCollectives(device, control, kMaxChunkBytes), options_(options) {}

  ~NcclCommunicator() override {
    if (comm_ != nullptr && Await(ncclCommFinalize(comm_), "leaving NCCL").ok()) {
      ncclCommDestroy(comm_);
    }
    if (aborted_.valid()) aborted_.wait_for(kAbortPatience);
  }

  Status Connect() {
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "load NCCL", LoadNccl()));
    const StatusOr<std::string> gpu = GpuId();
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "identify the GPU", gpu.status()));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> gpus,
                        control().Exchange("GPUs of the ranks", *gpu));
    ZG_RETURN_IF_ERROR(CheckOneRankPerGpu(gpus));

    ncclUniqueId id = {};
    Status status;
    if (rank() == 0) status = NcclStatus(ncclGetUniqueId(&id), "ncclGetUniqueId");
    ZG_RETURN_IF_ERROR(ExchangeStatus(control(), "start NCCL", status));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                        control().Exchange("NCCL's id", std::string(id.internal, sizeof(id))));
    std::memcpy(&id, ids[0].data(), sizeof(id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // so that a peer that does not come is an error and not a hang
    status = Await(ncclCommInitRankConfig(&comm_, size(), id, rank(), &config), "joining NCCL");
    return ExchangeStatus(control(), "join NCCL", status);
  }

  std::string_view transport() const override { return "NCCL"; }

  Status Synchronize() override {
    if (end_ == nullptr) {
      ZG_ASSIGN_OR_RETURN(end_, device().MakeEvent());
    }
    ZG_RETURN_IF_ERROR(end_->Record());
    ZG_RETURN_IF_ERROR(WaitFor(*end_));
    num_pending_ = num_done_ = 0;
    return Status::Ok();
  }

  // The event is done, or the first collective that did not get through is named.
  Status WaitFor(DeviceEvent& event) override {
    Clock::time_point progress = Clock::now();
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
      ncclResult_t result = ncclSuccess;
      ncclCommGetAsyncError(comm_, &result);
      if (result != ncclSuccess && result != ncclInProgress) {
        return Fail(NcclStatus(result, where));
      }
      if (Clock::now() - progress > std::chrono::duration<double>(options_.timeout_s)) {
        return Fail(DeadlineExceeded(
            "{} on rank {}: no progress for {} s; another rank does not take part, or the network "
            "between the GPUs is stuck",
            where, rank(), options_.timeout_s));
      }
      std::this_thread::sleep_for(kPollEvery);
    }
  }

 protected:
  Status SendAndReceive(const std::vector<Message>& sent,
                        const std::vector<Message>& received) override {
    if (sent.empty() && received.empty()) return Status::Ok();
    ZG_RETURN_IF_ERROR(Accept(ncclGroupStart(), "ncclGroupStart"));
    for (const Message& message : received) {
      ZG_RETURN_IF_ERROR(
          Accept(ncclRecv(message.data, message.bytes, ncclInt8, message.peer, comm_, stream()),
                 "ncclRecv"));
    }
    for (const Message& message : sent) {
      ZG_RETURN_IF_ERROR(
          Accept(ncclSend(message.data, message.bytes, ncclInt8, message.peer, comm_, stream()),
                 "ncclSend"));
    }
    return Await(ncclGroupEnd(), "ncclGroupEnd");
  }

  Status Fold(ReductionTypes types, const FoldInputs& inputs, int64_t elements,
              std::byte* output) override {
    return LeftFoldOnCuda(types, inputs, elements, output, stream());
  }

  Status GatherEqualParts(const std::byte* own, int64_t part_bytes, std::byte* output) override {
    if (part_bytes == 0) return Status::Ok();
    return Await(ncclAllGather(own, output, part_bytes, ncclInt8, comm_, stream()),
                 "ncclAllGather");
  }

  bool HasOwnSums(ReductionTypes types, bool accumulate) const override {
    return options_.own_sums && !accumulate && types.terms == types.sum;
  }
  Status OwnReduceScatter(const std::byte* input, std::byte* output, int64_t elements,
                          DType dtype) override {
    return Await(ncclReduceScatter(input, output, elements / size(), NcclType(dtype), ncclSum,
                                   comm_, stream()),
                 "ncclReduceScatter");
  }
  Status OwnAllReduce(const std::byte* input, std::byte* output, int64_t elements,
                      DType dtype) override {
    return Await(ncclAllReduce(input, output, elements, NcclType(dtype), ncclSum, comm_, stream()),
                 "ncclAllReduce");
  }

  Status Queued(std::string_view operation, std::string_view name) override {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    ZG_RETURN_IF_CUDA_ERROR(cudaStreamIsCapturing(stream(), &capture));
    if (capture != cudaStreamCaptureStatusNone) return Status::Ok();  // nothing is queued yet
    if (num_pending_ == pending_.size()) {
      ZG_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> event, device().MakeEvent());
      pending_.push_back({"", std::move(event)});
    }
    Pending& pending = pending_[num_pending_++];
    pending.name = fmt::format("{} '{}'", operation, name);
    return pending.event->Record();
  }

 private:
  struct Pending {  // a collective since the last Synchronize
    std::string name;
    std::unique_ptr<DeviceEvent> event;
  };

  cudaStream_t stream() const { return static_cast<cudaStream_t>(device().stream()); }

  Status NcclStatus(ncclResult_t result, std::string_view what) const {
    if (result == ncclSuccess || result == ncclInProgress) return Status::Ok();
    return FailedPrecondition("{} on rank {}: NCCL: {} ({})", what, rank(),
                              ncclGetErrorString(result), ncclGetLastError(comm_));
  }

  // After a call inside a group, which ends with an Await.
  Status Accept(ncclResult_t result, std::string_view what) {
    const Status status = NcclStatus(result, what);
    return status.ok() ? status : Fail(status);
  }

  // After a call that does not block: waits until NCCL has taken it up.
  Status Await(ncclResult_t result, std::string_view what) {
    const Clock::time_point begin = Clock::now();
    while (result == ncclInProgress) {
      if (Clock::now() - begin > std::chrono::duration<double>(options_.timeout_s)) {
        return Fail(DeadlineExceeded("{} on rank {}: not all ranks came within {} s", what, rank(),
                                     options_.timeout_s));
      }
      std::this_thread::yield();
      if (ncclCommGetAsyncError(comm_, &result) != ncclSuccess) result = ncclInternalError;
    }
    return Accept(result, what);
  }

  // Ends what NCCL still does on the GPU: freeing memory would wait for it. In a thread of its own,
  // since ncclCommAbort waits for recorded work with collectives to be destroyed, which comes after
  // this error, and for ranks that may not come.
  Status Fail(const Status& status) {
    if (comm_ == nullptr) return status;
    std::promise<void> aborted;
    aborted_ = aborted.get_future();
    std::thread([comm = comm_, aborted = std::move(aborted)]() mutable {
      ncclCommAbort(comm);
      aborted.set_value();
    }).detach();
    comm_ = nullptr;
    return status;
  }

  const NcclOptions options_;
  ncclComm_t comm_ = nullptr;
  std::future<void> aborted_;  // of the one before an error

  std::unique_ptr<DeviceEvent> end_;
  std::vector<Pending> pending_;
  size_t num_pending_ = 0;
  size_t num_done_ = 0;  // of these
};

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(Device* device, Communicator* control,
                                                             const NcclOptions& options) {
  auto communicator = std::make_unique<NcclCommunicator>(device, control, options);
  ZG_RETURN_IF_ERROR(communicator->Connect());
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace zg
