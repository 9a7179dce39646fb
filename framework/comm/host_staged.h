// HostStagedCommunicator: the collectives of ranks whose arenas are on devices, through the host.
// Operands are copied into pinned memory piece by piece, another communicator runs the collective
// there, and the result is copied back. So the bits are those of the other communicator. Several
// ranks may share a GPU, which NCCL refuses; but every byte crosses the bus twice and the host
// waits for the device.
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"

namespace zg {

// From here on only the result may use `host`. `host` and the device must outlive it. Every rank
// must call this. Errors: too little memory on the host; memory that cannot be pinned.
StatusOr<std::unique_ptr<Communicator>> MakeHostStagedCommunicator(Device* device,
                                                                   Communicator* host);

}  // namespace zg
