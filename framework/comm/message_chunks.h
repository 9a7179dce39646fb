// How much room collectives as messages take in the arena (mpi_messages.h): two chunks of every
// peer's part.
#pragma once

#include <cstdint>

namespace zg {

// While one chunk of every peer is folded, the next is on its way.
inline constexpr int kMessageDepth = 2;

int64_t MessageChunkBytes(int num_ranks);

// What Communicator::workspace_bytes is when ranks talk by messages.
int64_t MessageWorkspaceBytes(int num_ranks);

}  // namespace zg
