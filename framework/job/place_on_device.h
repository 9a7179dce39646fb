// PlaceOnDevice: gives a rank the device of its --device flag: opens its GPU and connects it with
// the GPUs of the other ranks.
#pragma once

#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"
#include "framework/job/job_options.h"

namespace zg {

// Both are null if the rank stays on the host.
struct RankOnDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;  // destroyed before its device
  std::string transport_reason;                // why the communicator has this transport
};

// `host` must outlive the result. Ranks of one host take its GPUs in turn. Every rank must call
// this; an error on one is an error on all: no GPU; GPUs that cannot communicate as the flags ask.
// By default they map each other's memory, or use NCCL if one of them cannot.
StatusOr<RankOnDevice> PlaceOnDevice(const JobOptions& options, Communicator* host);

}  // namespace zg
