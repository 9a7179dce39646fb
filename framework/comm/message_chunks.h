// Collectives over messages (mpi_messages.h) go in chunks. Their scratch memory in the arena is one
// chunk for every peer and each of those under way.
#pragma once

#include <cstdint>

#include "framework/base/status.h"

namespace zg {

// While one chunk of every peer is being folded, the next ones are under way.
inline constexpr int kMessageDepth = 8;

// The place of a step among those under way.
inline int MessageSlot(int64_t step) { return static_cast<int>(step % kMessageDepth); }

// Posts and finishes the messages of a collective's steps, which are one chunk of every part each.
// Both are in order, and when a step is posted, the one that had its slot has been finished.
template <typename Post, typename Finish>
Status RunChunks(int64_t num_steps, const Post& post, const Finish& finish) {
  for (int64_t step = 0; step < num_steps + kMessageDepth; ++step) {
    if (step >= kMessageDepth) ZG_RETURN_IF_ERROR(finish(step - kMessageDepth));
    if (step < num_steps) ZG_RETURN_IF_ERROR(post(step));
  }
  return Status::Ok();
}

int64_t MessageChunkBytes(int num_ranks);

// Arena::workspace_bytes of ranks that communicate by messages.
int64_t MessageWorkspaceBytes(int num_ranks);

}  // namespace zg
