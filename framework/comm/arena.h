// Arena: one block of memory per rank with the same layout everywhere, so that an operand of a
// collective is an offset, and a peer's operand is found without asking the peer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/status.h"
#include "framework/device/device.h"

namespace zg {

// Bytes [offset + rank * rank_stride, ...) of the arena of the rank with index `rank` in its group.
struct ArenaOperand {
  int64_t offset = 0;
  int64_t rank_stride = 0;
  int64_t OffsetOn(int rank) const { return offset + rank * rank_stride; }
};

class Arena {
 public:
  virtual ~Arena() = default;

  // The device that the memory belongs to.
  virtual Device& device() const { return CpuDevice(); }

  // Scratch memory that the transport needs inside the arena (0 when peers' memory is read in
  // place).
  virtual int64_t workspace_bytes() const = 0;

  // Allocates the arena of every rank on its device: `bytes` zeroed bytes, aligned as by
  // Device::Allocate. The transport uses workspace_bytes() of them at workspace_offset (a multiple
  // of 64). Every rank of the job must call this, in the same order; a second call replaces the
  // arena. Errors: not enough memory (with the bytes required and available), peers' memory that
  // cannot be mapped. An error on one rank is an error on all.
  virtual StatusOr<std::byte*> Allocate(int64_t bytes, int64_t workspace_offset) = 0;

  // Bytes of other ranks' arenas that are mapped into this process and resident. The operating
  // system counts them in this process's resident set, though they are not its memory.
  virtual int64_t peer_resident_bytes() const { return 0; }

  // Whether a program is in the arena, which Allocate would take away from it.
  bool is_used() const { return is_used_; }
  void set_is_used(bool is_used) { is_used_ = is_used; }

  // This rank's block; null before Allocate.
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  int64_t workspace_offset() const { return workspace_offset_; }

 protected:
  void SetBlock(std::byte* data, int64_t bytes, int64_t workspace_offset) {
    data_ = data;
    bytes_ = bytes;
    workspace_offset_ = workspace_offset;
  }
  void ClearBlock() { SetBlock(nullptr, 0, 0); }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t workspace_offset_ = 0;
  bool is_used_ = false;
};

}  // namespace zg
