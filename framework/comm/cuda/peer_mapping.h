// PeerMapping: the memory of all ranks' GPUs, mapped by each rank: between processes through
// cudaIpc handles, between threads of one process by address. Ranks may share a GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/control_plane.h"

namespace zg {

// The location of a rank, as exchanged among ranks.
struct GpuOfRank {
  std::string host;
  std::string process;  // equal for ranks that are threads of one process
  std::string bus_id;   // of the GPU on its host
};

// Why `rank`, on the GPU of the calling thread, cannot map the memory of `other`'s GPU; empty if it
// can.
std::string PeerProblem(int rank, const GpuOfRank& gpu, int other_rank, const GpuOfRank& other);

class PeerMapping {
 public:
  // For the GPU of the calling thread. `process` names the process; if empty, this finds the name.
  // Every rank must call this. Errors: those of the control plane and of CUDA.
  static StatusOr<std::unique_ptr<PeerMapping>> Create(ControlPlane* control, std::string process);

  // Why some rank cannot map another's memory, the same on all ranks; empty if all can.
  const std::string& problem() const { return problem_; }

  // Whether ranks of other processes map this rank's memory.
  bool has_other_processes() const;

  // Maps the allocations that the ranks pass, each its own from its beginning, and returns their
  // addresses on this rank's GPU. Every rank must call this. An error on one rank is an error on
  // all.
  StatusOr<std::vector<std::byte*>> Map(std::string_view what, std::byte* own);

  // Unmaps such addresses. The other ranks' memory exists until they free it.
  void Unmap(const std::vector<std::byte*>& addresses);

 private:
  PeerMapping(ControlPlane* control, std::vector<GpuOfRank> gpus)
      : control_(*control), gpus_(std::move(gpus)) {}

  std::string OwnProblem() const;
  bool IsInOwnProcess(int rank) const;
  Status OpenAll(std::string_view what, std::byte* own, const std::vector<std::string>& handles,
                 std::vector<std::byte*>* addresses);

  ControlPlane& control_;
  const std::vector<GpuOfRank> gpus_;  // by rank
  std::string problem_;
};

}  // namespace zg
