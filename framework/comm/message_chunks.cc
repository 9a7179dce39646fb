#include "framework/comm/message_chunks.h"

#include <algorithm>

namespace zg {

int64_t MessageChunkBytes(int num_ranks) {
  // Open MPI sends up to 64 KiB over TCP, with its header, without first asking the receiver
  // (btl_tcp_eager_limit): such a chunk takes the latency of the link once instead of three times.
  // With many ranks the workspace is kept at about 16 MiB.
  constexpr int64_t kMaxChunkBytes = 60 << 10;
  constexpr int64_t kMinChunkBytes = 4 << 10;
  const int64_t share = (int64_t{16} << 20) / (kMessageDepth * std::max(1, num_ranks - 1));
  return std::clamp(share / 4096 * 4096, kMinChunkBytes, kMaxChunkBytes);
}

int64_t MessageWorkspaceBytes(int num_ranks) {
  return kMessageDepth * (num_ranks - 1) * MessageChunkBytes(num_ranks);
}

}  // namespace zg
