// Ranks on GPUs of one host that map each other's memory, like ranks on a CPU: every byte crosses
// once, from its owner to its reader. A sum over ranks is one kernel that reads the peers' terms
// and folds them in rank order (cuda/fold_peers.h). A gather copies from the peers with the copy
// engine, and queues synchronise at flags in GPU memory (cuda/stream_rendezvous.h). It needs no
// library and no receive buffers, and lets ranks share a GPU.
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
  // The process of the rank; ranks of one process map each other's memory by address. Empty: this
  // process. Tests use threads as ranks that stand for processes.
  std::string process = {};
};

// A communicator, or why there cannot be one: "ranks 0 and 2 are on different hosts (a, b)". The
// same on all ranks.
struct CudaPeers {
  std::unique_ptr<Communicator> communicator;
  std::string problem;
};

// `control` carries the data of the host; it and the device must outlive the result. Every rank
// must call this. Errors, on all ranks: of CUDA, of the control plane.
StatusOr<CudaPeers> ConnectCudaPeers(Device* device, ControlPlane* control,
                                     const CudaPeerOptions& options);

}  // namespace zg
