// CopyFromPeer: copies a peer's part into this rank's arena, as in an all-gather. Large parts are
// written past the caches (non-temporal stores): fetching the lines to be overwritten from memory,
// while the peer does the same to its own, made it three to four times slower on an AMD EPYC.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zg {

// The ranges must not overlap.
void CopyFromPeer(const std::byte* from, int64_t bytes, std::byte* to);

}  // namespace zg
