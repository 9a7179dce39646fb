#include "framework/comm/group.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/base/check.h"

namespace zg {

std::vector<int> InFoldOrder(const std::vector<int>& ranks) {
  std::vector<int> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return ranks[a] < ranks[b]; });
  return order;
}

Group::Group(std::vector<int> ranks, int job_rank, TrafficMeter* traffic)
    : ranks_(std::move(ranks)),
      fold_order_(InFoldOrder(ranks_)),
      fold_position_(ranks_.size()),
      traffic_(traffic) {
  const auto own = std::find(ranks_.begin(), ranks_.end(), job_rank);
  ZG_CHECK(own != ranks_.end(), "rank {} is not in its group", job_rank);
  rank_ = static_cast<int>(own - ranks_.begin());
  for (size_t i = 0; i < fold_order_.size(); ++i)
    fold_position_[fold_order_[i]] = static_cast<int>(i);
}

}  // namespace zg
