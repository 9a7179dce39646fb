// Collectives over messages (mpi_messages.h) go in chunks. Their scratch memory in the arena is one
// chunk for every peer and each of those under way.
#pragma once

#include <cstdint>

namespace zg {

// While one chunk of every peer is being folded, the next ones are in flight.
inline constexpr int kMessageDepth = 8;

int64_t MessageChunkBytes(int num_ranks);

// Arena::workspace_bytes of ranks that communicate by messages.
int64_t MessageWorkspaceBytes(int num_ranks);

}  // namespace zg
