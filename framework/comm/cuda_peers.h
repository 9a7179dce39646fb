// Ranks on GPUs of one host that map each other's memory, as the ranks of a CPU do: every byte
// crosses once, from where it is to where it is needed. A sum over ranks is one kernel that reads the
// peers' terms and folds them in rank order (cuda/fold_peers.h), a gather is copies from the peers by
// the copy engine, and queues meet at flags in GPU memory (cuda/stream_rendezvous.h). Needs no
// library, no room for what is received, and lets ranks share a GPU.
//
// In a build without CUDA the function is an error that says so (no_cuda_peers.cc).
#pragma once

#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/comm/control_plane.h"
#include "framework/device/device.h"

namespace zg {

struct CudaPeerOptions {
  double timeout_s = 0;  // without any progress of the queue
  // Of the rank; ranks of one map each other's memory by address. Empty: this one. Tests have ranks
  // that are threads and stand for processes.
  std::string process = {};
};

// A communicator, or why there cannot be one: "ranks 0 and 2 are on different hosts (a, b)". Either
// on all ranks.
struct CudaPeers {
  std::unique_ptr<Communicator> communicator;
  std::string problem;
};

// `control` carries the data of the host; it and the device must outlive the result. Every rank must
// call this. Errors, on all ranks: of CUDA, of the control plane.
StatusOr<CudaPeers> ConnectCudaPeers(Device* device, ControlPlane* control,
                                     const CudaPeerOptions& options);

}  // namespace zg
