#include "framework/comm/cuda/cuda_peer_arena.h"

#include <utility>

namespace zg {

CudaPeerArena::~CudaPeerArena() {
  mapping_.Unmap(blocks_);
  // CUDA requires every mapping to be closed before memory is freed, and other processes may not
  // have reached this point; after a failure, peers may even still read it. In these cases the
  // memory stays until the end of the process.
  if (mapping_.has_other_processes() || rendezvous_.has_failed()) memory_.release();
}

StatusOr<std::byte*> CudaPeerArena::Allocate(int64_t bytes, int64_t workspace_offset) {
  ZG_RETURN_IF_ERROR(
      control_.Barrier(fmt::format("allocate_arena of {} bytes, {}", bytes, workspace_offset)));
  ZG_RETURN_IF_ERROR(FreeOnAllRanks());
  StatusOr<DeviceBytes> memory = device_.Allocate(bytes);
  ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "allocate arena", memory.status()));
  ZG_ASSIGN_OR_RETURN(blocks_, mapping_.Map("the arena", memory->get()));
  memory_ = std::move(*memory);
  SetBlock(memory_.get(), bytes, workspace_offset);
  return memory_.get();
}

// Frees the memory only when no queue reads from it any more, and no rank maps it.
Status CudaPeerArena::FreeOnAllRanks() {
  ClearBlock();
  if (memory_ != nullptr) {
    ZG_RETURN_IF_ERROR(
        ExchangeStatus(control_, "wait for the arena's last use", rendezvous_.Synchronize()));
  }
  mapping_.Unmap(blocks_);
  blocks_.clear();
  ZG_RETURN_IF_ERROR(control_.Barrier("free arena"));
  memory_ = nullptr;
  return Status::Ok();
}

}  // namespace zg
