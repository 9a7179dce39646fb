// PeerMapping: the memory of the GPUs of all ranks, mapped by each of them. Between processes through
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

// Where a rank is, as the others are told.
struct GpuOfRank {
  std::string host;
  std::string process;  // equal for ranks that are threads of one process
  std::string bus_id;   // of the GPU on its host
};

// Why `rank` cannot map the memory of `other`'s GPU; empty if nothing speaks against it. On the GPU
// that the calling thread uses.
std::string PeerProblem(int rank, const GpuOfRank& gpu, int other_rank, const GpuOfRank& other);

class PeerMapping {
 public:
  // For the GPU that the calling thread uses. `process` names the process; empty: by itself.
  // Every rank must call this. Error: of the control plane, or of CUDA.
  static StatusOr<std::unique_ptr<PeerMapping>> Create(ControlPlane* control, std::string process);

  // Why some rank cannot map another's memory, the same on all ranks; empty if all can.
  const std::string& problem() const { return problem_; }

  // Whether ranks of other processes map what this one does.
  bool has_other_processes() const;

  // The addresses, on this rank's GPU, of what every rank calls this with: an allocation of its own,
  // from its beginning. Every rank must call this. An error on one rank is an error on all.
  StatusOr<std::vector<std::byte*>> Map(std::string_view what, std::byte* own);

  // Of such addresses. The other ranks' memory is there until they free it.
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
