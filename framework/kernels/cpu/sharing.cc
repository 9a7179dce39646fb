#include "framework/kernels/cpu/sharing.h"

#include <atomic>

namespace zg {
namespace {

constexpr double kElements = 16 << 10;
constexpr double kMultiplications = 512 << 10;

std::atomic<bool> shares_small_work{false};

int Sharing(int threads, int64_t count, int64_t unit, double work, double least) {
  if (threads <= 1) return 1;
  const int64_t units = (count + unit - 1) / unit;
  double most = static_cast<double>(std::min<int64_t>(threads, units));
  if (!shares_small_work.load(std::memory_order_relaxed)) most = std::min(most, work / least);
  return std::max(1, static_cast<int>(most));
}

}  // namespace

void ShareSmallWork(bool shares) { shares_small_work.store(shares); }

int NumSharing(int threads, int64_t count, int64_t unit, int64_t cost) {
  return Sharing(threads, count, unit, static_cast<double>(count) * static_cast<double>(cost),
                 kElements);
}

int NumSharingProduct(int threads, int64_t count, int64_t unit, int64_t multiplications) {
  return Sharing(threads, count, unit, static_cast<double>(multiplications), kMultiplications);
}

}  // namespace zg
