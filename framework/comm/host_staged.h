// Collectives of ranks whose arenas are on devices, by way of the host: what a collective reads is
// copied into pinned memory piece by piece, another communicator does it there, and the result is
// copied back. The sums are the other's, so the bits are too. Several ranks may share a GPU, which
// NCCL refuses; every byte crosses the bus twice, and the host waits for the device.
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"

namespace zg {

// `host` works for this one alone from here on; both outlive the result. Every rank must call this.
// Errors: too little memory on the host, or it cannot be pinned.
StatusOr<std::unique_ptr<Communicator>> MakeHostStagedCommunicator(Device* device,
                                                                   Communicator* host);

}  // namespace zg
