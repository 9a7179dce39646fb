// The scratch memory in the arena of collectives by messages (mpi_messages.h): two chunks for every
// peer.
#pragma once

#include <cstdint>

namespace zg {

// While one chunk of every peer is folded, the next is on its way.
inline constexpr int kMessageDepth = 2;

int64_t MessageChunkBytes(int num_ranks);

// Arena::workspace_bytes of ranks that talk by messages.
int64_t MessageWorkspaceBytes(int num_ranks);

}  // namespace zg
