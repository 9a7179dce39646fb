// Ranks on GPUs, one rank per GPU, over NCCL. Collectives are queued with the kernels. Sums keep
// the order of all other transports (ordered_group.h), unless NCCL's own sums are requested.
//
// In a build without NCCL the function is an error that says so (no_nccl.cc).
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"

namespace zg {

struct NcclOptions {
  double timeout_s = 0;  // without any progress of the queue
  // Uses NCCL's own reductions, where it has them: faster, but the bits depend on the number of
  // ranks and on NCCL's algorithm. Sums that continue an accumulator, and sums of 16-bit terms in
  // f32, keep the order of the other transports.
  bool own_sums = false;
};

// `control` carries the data of the host; it and the device must outlive the result. Every rank
// must call this. Errors, on all ranks: two ranks on one GPU; an error of NCCL.
StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(Device* device, ControlPlane* control,
                                                             const NcclOptions& options);

}  // namespace zg
