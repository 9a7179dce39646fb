#include "framework/comm/peer_copy.h"

#include <cstring>

// Highway compiles the part up to HWY_AFTER_NAMESPACE once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/comm/peer_copy.cc"  // NOLINT
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace zg::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void PrefetchingCopy(const uint8_t* from, int64_t bytes, uint8_t* to) {
  constexpr int64_t kPrefetchBytes = 2048;
  const hn::ScalableTag<uint8_t> octets;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(octets));
  int64_t i = 0;
  for (; i + lanes <= bytes; i += lanes) {
    hwy::Prefetch(from + i + kPrefetchBytes);
    hwy::Prefetch(to + i + kPrefetchBytes);
    hn::StoreU(hn::LoadU(octets, from + i), octets, to + i);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

}  // namespace zg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zg {

HWY_EXPORT(PrefetchingCopy);

void CopyFromPeer(const std::byte* from, int64_t bytes, std::byte* to) {
  constexpr int64_t kPrefetchFromBytes = 32 << 10;
  if (bytes < kPrefetchFromBytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  HWY_DYNAMIC_DISPATCH(PrefetchingCopy)
  (reinterpret_cast<const uint8_t*>(from), bytes, reinterpret_cast<uint8_t*>(to));
}

}  // namespace zg
#endif  // HWY_ONCE
