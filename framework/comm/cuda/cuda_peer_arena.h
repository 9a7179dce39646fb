// CudaPeerArena: this rank's memory on its GPU, mapped by all ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "framework/comm/arena.h"
#include "framework/comm/cuda/peer_mapping.h"
#include "framework/comm/cuda/stream_rendezvous.h"

namespace zg {

class CudaPeerArena : public Arena {
 public:
  // All must outlive this.
  CudaPeerArena(Device* device, ControlPlane* control, PeerMapping* mapping,
                StreamRendezvous* rendezvous)
      : device_(*device), control_(*control), mapping_(*mapping), rendezvous_(*rendezvous) {}
  ~CudaPeerArena() override;

  Device& device() const override { return device_; }
  int64_t workspace_bytes() const override { return 0; }
  StatusOr<std::byte*> Allocate(int64_t bytes, int64_t workspace_offset) override;

  // The block of a rank of the job.
  const std::byte* of(int rank) const { return blocks_[rank]; }

 private:
  Status FreeOnAllRanks();

  Device& device_;
  ControlPlane& control_;
  PeerMapping& mapping_;
  StreamRendezvous& rendezvous_;
  DeviceBytes memory_;
  std::vector<std::byte*> blocks_;  // by rank; empty before Allocate
};

}  // namespace zg
