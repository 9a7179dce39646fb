#include "framework/comm/cuda/peer_mapping.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <utility>

#include "framework/comm/cuda/peer_block.h"
#include "framework/device/cuda/cuda_status.h"

namespace zg {
namespace {

// A string that is unique to each process of the world.
const std::string& OwnProcess() {
  static const auto& process = *new std::string([] {
    std::random_device random;
    return fmt::format("{}-{:08x}{:08x}", getpid(), random(), random());
  }());
  return process;
}

StatusOr<GpuOfRank> OwnGpu(std::string process) {
  GpuOfRank gpu;
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  gpu.host = host;
  gpu.process = process.empty() ? OwnProcess() : std::move(process);
  int index = 0;
  ZG_RETURN_IF_CUDA_ERROR(cudaGetDevice(&index));
  char bus_id[64] = {};
  ZG_RETURN_IF_CUDA_ERROR(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), index));
  gpu.bus_id = bus_id;
  return gpu;
}

std::string Packed(const GpuOfRank& gpu) {
  return fmt::format("{}\n{}\n{}", gpu.host, gpu.process, gpu.bus_id);
}

GpuOfRank Unpacked(const std::string& text) {
  const size_t first = text.find('\n');
  const size_t second = text.find('\n', first + 1);
  return {text.substr(0, first), text.substr(first + 1, second - first - 1),
          text.substr(second + 1)};
}

// A rank's description of its memory: the address, and the handle if another process needs one.
struct Exported {
  std::byte* address = nullptr;
  cudaIpcMemHandle_t handle = {};
};

}  // namespace

std::string PeerProblem(int rank, const GpuOfRank& gpu, int other_rank, const GpuOfRank& other) {
  if (gpu.host != other.host) {
    return fmt::format("ranks {} and {} are on different hosts ({}, {})", rank, other_rank,
                       gpu.host, other.host);
  }
  if (gpu.bus_id == other.bus_id) {
    if (gpu.process != other.process) return "";
    // Loading a kernel or freeing memory waits for all queues of a process on a GPU, including one
    // that waits for this rank.
    return fmt::format("ranks {} and {} are threads of one process on one GPU ({})", rank,
                       other_rank, gpu.bus_id);
  }
  int own_index = 0;
  int other_index = 0;
  int can_access = 0;
  if (cudaGetDevice(&own_index) != cudaSuccess ||
      cudaDeviceGetByPCIBusId(&other_index, other.bus_id.c_str()) != cudaSuccess) {
    cudaGetLastError();  // reported here, so no later caller must see it
    return fmt::format(
        "rank {} does not see the GPU {} of rank {}; give all ranks of a host the same "
        "CUDA_VISIBLE_DEVICES",
        rank, other.bus_id, other_rank);
  }
  if (cudaDeviceCanAccessPeer(&can_access, own_index, other_index) != cudaSuccess ||
      can_access == 0) {
    cudaGetLastError();
    return fmt::format("the GPU {} of rank {} cannot map the memory of the GPU {} of rank {}",
                       gpu.bus_id, rank, other.bus_id, other_rank);
  }
  return "";
}

StatusOr<std::unique_ptr<PeerMapping>> PeerMapping::Create(ControlPlane* control,
                                                           std::string process) {
  const StatusOr<GpuOfRank> own = OwnGpu(std::move(process));
  ZG_RETURN_IF_ERROR(ExchangeStatus(*control, "identify the GPU", own.status()));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                      control->Exchange("GPUs of the ranks", Packed(*own)));
  std::vector<GpuOfRank> gpus;
  for (const std::string& text : texts) gpus.push_back(Unpacked(text));
  std::unique_ptr<PeerMapping> mapping(new PeerMapping(control, std::move(gpus)));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> problems,
                      control->Exchange("peer access", mapping->OwnProblem()));
  for (const std::string& problem : problems) {
    if (mapping->problem_.empty()) mapping->problem_ = problem;
  }
  return mapping;
}

std::string PeerMapping::OwnProblem() const {
  if (control_.size() > PeerBlock::kMaxRanks) {
    return fmt::format("the job has {} ranks, more than {}", control_.size(), PeerBlock::kMaxRanks);
  }
  const int rank = control_.rank();
  for (int other = 0; other < control_.size(); ++other) {
    if (other == rank) continue;
    std::string problem = PeerProblem(rank, gpus_[rank], other, gpus_[other]);
    if (!problem.empty()) return problem;
  }
  return "";
}

bool PeerMapping::IsInOwnProcess(int rank) const {
  return gpus_[rank].process == gpus_[control_.rank()].process;
}

bool PeerMapping::has_other_processes() const {
  for (int rank = 0; rank < control_.size(); ++rank) {
    if (!IsInOwnProcess(rank)) return true;
  }
  return false;
}

StatusOr<std::vector<std::byte*>> PeerMapping::Map(std::string_view what, std::byte* own) {
  Exported exported;
  exported.address = own;
  Status status;
  if (has_other_processes()) {
    status = CudaStatus(cudaIpcGetMemHandle(&exported.handle, own), "cudaIpcGetMemHandle");
  }
  if (!status.ok()) {
    status = FailedPrecondition("rank {} on {} cannot share {} of its GPU {}: {}", control_.rank(),
                                gpus_[control_.rank()].host, what, gpus_[control_.rank()].bus_id,
                                status.message());
  }
  ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "share memory of GPUs", status));
  const std::string mine(reinterpret_cast<const char*>(&exported), sizeof(exported));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> handles,
                      control_.Exchange("handles of memory of GPUs", mine));
  std::vector<std::byte*> addresses;
  status = OpenAll(what, own, handles, &addresses);
  if (Status on_all = ExchangeStatus(control_, "map memory of GPUs", status); !on_all.ok()) {
    Unmap(addresses);
    ZG_RETURN_IF_ERROR(control_.Barrier("unmap memory of GPUs"));  // before any rank frees it
    return on_all;
  }
  return addresses;
}

Status PeerMapping::OpenAll(std::string_view what, std::byte* own,
                            const std::vector<std::string>& handles,
                            std::vector<std::byte*>* addresses) {
  for (int rank = 0; rank < control_.size(); ++rank) {
    Exported exported;
    std::memcpy(&exported, handles[rank].data(), sizeof(exported));
    if (rank == control_.rank()) {
      addresses->push_back(own);
      continue;
    }
    cudaError_t code = cudaSuccess;
    void* address = exported.address;
    if (!IsInOwnProcess(rank)) {
      code = cudaIpcOpenMemHandle(&address, exported.handle, cudaIpcMemLazyEnablePeerAccess);
    } else if (gpus_[rank].bus_id != gpus_[control_.rank()].bus_id) {
      int index = 0;
      code = cudaDeviceGetByPCIBusId(&index, gpus_[rank].bus_id.c_str());
      if (code == cudaSuccess) code = cudaDeviceEnablePeerAccess(index, 0);
      if (code == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
        code = cudaSuccess;
      }
    }
    if (code != cudaSuccess) {
      cudaGetLastError();
      return FailedPrecondition(
          "rank {} on {} cannot map {} of rank {}'s GPU {}: {} ({}); containers of one host need "
          "a common IPC namespace, such as ipc=host of Docker",
          control_.rank(), gpus_[rank].host, what, rank, gpus_[rank].bus_id,
          cudaGetErrorString(code), cudaGetErrorName(code));
    }
    addresses->push_back(static_cast<std::byte*>(address));
  }
  return Status::Ok();
}

void PeerMapping::Unmap(const std::vector<std::byte*>& addresses) {
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    if (!IsInOwnProcess(static_cast<int>(rank))) cudaIpcCloseMemHandle(addresses[rank]);
  }
}

}  // namespace zg
