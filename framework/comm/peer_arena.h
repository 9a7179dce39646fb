// PeerArena: an arena whose peers' blocks can be read in place.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "framework/comm/arena.h"

namespace zg {

class PeerArena : public Arena {
 public:
  int64_t workspace_bytes() const final { return 0; }

  // The block of a rank of the job.
  const std::byte* of(int rank) const { return views_[rank]; }

 protected:
  // `views` are the blocks of all ranks, by rank; `own` is the writable view of this rank's.
  void SetBlocks(std::byte* own, std::vector<const std::byte*> views, int64_t bytes) {
    SetBlock(own, bytes, 0);
    views_ = std::move(views);
  }
  void ClearBlocks() { SetBlocks(nullptr, {}, 0); }

 private:
  std::vector<const std::byte*> views_;
};

}  // namespace zg
