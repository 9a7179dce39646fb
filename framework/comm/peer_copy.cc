#include "framework/comm/peer_copy.h"

#include <cstring>

// Highway compiles the part up to HWY_AFTER_NAMESPACE once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/comm/peer_copy.cc"  // NOLINT
#include <hwy/foreach_target.h>
// foreach_target.h must be included first.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "framework/base/instruction_set.h"

HWY_BEFORE_NAMESPACE();
namespace zg::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void StreamingCopy(const uint8_t* from, int64_t bytes, uint8_t* to) {
  constexpr int64_t kPrefetchBytes = 2048;
  const hn::ScalableTag<uint8_t> octets;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(octets));
  // Non-temporal stores need alignment.
  const int64_t head = -static_cast<int64_t>(reinterpret_cast<uintptr_t>(to)) & (lanes - 1);
  std::memcpy(to, from, head);
  int64_t i = head;
  for (; i + lanes <= bytes; i += lanes) {
    hwy::Prefetch(from + i + kPrefetchBytes);
    hn::Stream(hn::LoadU(octets, from + i), octets, to + i);
  }
  std::memcpy(to + i, from + i, bytes - i);
  // The release with which the caller tells others that it is done does not order them.
  hwy::FlushStream();
}

}  // namespace zg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zg {

HWY_EXPORT(StreamingCopy);

void CopyFromPeer(const std::byte* from, int64_t bytes, std::byte* to) {
  constexpr int64_t kStreamFromBytes = 256 << 10;
  if (bytes < kStreamFromBytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  ZG_HWY_DISPATCH(StreamingCopy)
  (reinterpret_cast<const uint8_t*>(from), bytes, reinterpret_cast<uint8_t*>(to));
}

}  // namespace zg
#endif  // HWY_ONCE
