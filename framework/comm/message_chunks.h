// The scratch memory in the arena for collectives over messages (mpi_messages.h): two chunks for
// every peer.
#pragma once

#include <cstdint>

namespace zg {

// While one chunk of every peer is being folded, the next is in flight.
inline constexpr int kMessageDepth = 2;

int64_t MessageChunkBytes(int num_ranks);

// Arena::workspace_bytes of ranks that communicate by messages.
int64_t MessageWorkspaceBytes(int num_ranks);

}  // namespace zg
