// CopyFromPeer: copies a peer's part, in an all-gather and the like, into this rank's arena. The
// memory is in no cache of this core and often in none at all, so both sides are prefetched: at 16
// MB and 320 MB that took 20 % less time than memcpy (which uses non-temporal stores for the larger
// one).
#pragma once

#include <cstddef>
#include <cstdint>

namespace zg {

// The ranges must not overlap.
void CopyFromPeer(const std::byte* from, int64_t bytes, std::byte* to);

}  // namespace zg
