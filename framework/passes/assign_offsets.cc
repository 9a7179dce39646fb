#include "framework/passes/assign_offsets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "framework/passes/offsets_over_time.h"

namespace zg {
namespace {

// The length of the search if the bound is not reached, first over orders, at least one of them, then
// by improvements. A round places all buffers once and compares them with one another.
constexpr int64_t kMaxOrderComparisons = 1'000'000'000;
// If one round takes more comparisons, a placement over time is good enough at this much above the
// bound.
constexpr double kGoodEnough = 1.02;
constexpr int64_t kMaxImprovements = 200;
constexpr int64_t kMaxImprovementComparisons = 100'000'000;

int64_t Aligned(int64_t bytes) {
  return (bytes + kBufferAlignmentBytes - 1) / kBufferAlignmentBytes * kBufferAlignmentBytes;
}

// A buffer of one timeline.
struct Item {
  int index = 0;  // among all buffers
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  int64_t duration() const { return int64_t{last} - first + 1; }
};

enum class Fit { kLowest, kTightest };

// The items of one timeline, where a round put them.
struct Placement {
  std::vector<int64_t> offsets;  // by item
  int64_t top = 0;
};

class TimelinePlanner {
 public:
  explicit TimelinePlanner(std::vector<Item> items) : items_(std::move(items)) {
    for (const Item& item : items_) last_moment_ = std::max(last_moment_, item.last);
  }

  // The largest sum of bytes alive at one moment.
  int64_t LowerBound() const {
    int64_t largest = 0;
    for (const int64_t alive : AliveBytes()) largest = std::max(largest, alive);
    return largest;
  }

  // Returns the smallest arena found; the search stops at `enough` bytes.
  Placement Run(int64_t enough) {
    Placement best;
    best.top = std::numeric_limits<int64_t>::max();
    if (Comparisons() > kMaxOrderComparisons) {
      for (const bool backwards : {false, true}) {
        Placement placement = PlaceOverTime(backwards);
        if (placement.top < best.top) best = std::move(placement);
      }
      if (static_cast<double>(best.top) <= kGoodEnough * static_cast<double>(enough)) return best;
    }
    std::vector<int> best_order;
    Fit best_fit = Fit::kLowest;
    int64_t rounds = std::max<int64_t>(1, kMaxOrderComparisons / Comparisons());
    for (const std::vector<int>& order : Orders()) {
      for (const Fit fit : {Fit::kLowest, Fit::kTightest}) {
        if (rounds-- <= 0) break;
        Placement placement = Place(order, fit);
        if (placement.top < best.top) {
          best = std::move(placement);
          best_order = order;
          best_fit = fit;
        }
        if (best.top <= enough) return best;
      }
    }
    Improve(best_order, best_fit, enough, &best);
    return best;
  }

  const std::vector<Item>& items() const { return items_; }

 private:
  struct Placed {
    int first;
    int last;
    int64_t begin;
    int64_t end;
  };

  // In a round.
  int64_t Comparisons() const {
    const auto num_items = static_cast<int64_t>(items_.size());
    return num_items * num_items;
  }

  // By moment.
  std::vector<int64_t> AliveBytes() const {
    std::vector<int64_t> alive(last_moment_ + 2);
    for (const Item& item : items_) {
      alive[item.first] += item.bytes;
      alive[item.last + 1] -= item.bytes;
    }
    std::partial_sum(alive.begin(), alive.end(), alive.begin());
    return alive;
  }

  // Larger keys go first.
  template <typename Key>
  std::vector<int> OrderBy(Key key) const {
    std::vector<decltype(key(items_[0]))> keys;
    for (const Item& item : items_) keys.push_back(key(item));
    std::vector<int> order(items_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });
    return order;
  }

  std::vector<std::vector<int>> Orders() const {
    const std::vector<int64_t> alive = AliveBytes();
    const auto busiest = [&](const Item& i) {
      return *std::max_element(alive.begin() + i.first, alive.begin() + i.last + 1);
    };
    return {
        OrderBy([](const Item& i) { return std::tuple(i.bytes, i.duration()); }),
        OrderBy([](const Item& i) {
          return std::tuple(static_cast<double>(i.bytes) * static_cast<double>(i.duration()));
        }),
        OrderBy([](const Item& i) { return std::tuple(i.duration(), i.bytes); }),
        OrderBy([&](const Item& i) { return std::tuple(busiest(i), i.bytes); }),
        OrderBy([](const Item& i) { return std::tuple(-i.first, i.bytes); }),
        OrderBy([](const Item& i) { return std::tuple(i.last, i.bytes); }),
    };
  }

  // Puts the items in the order of time or the opposite one.
  Placement PlaceOverTime(bool backwards) const {
    std::vector<TimedBuffer> buffers;
    for (const Item& item : items_) {
      buffers.push_back({item.bytes, backwards ? last_moment_ - item.last : item.first,
                         backwards ? last_moment_ - item.first : item.last});
    }
    Placement placement = {OffsetsOverTime(buffers)};
    for (size_t i = 0; i < items_.size(); ++i) {
      placement.top = std::max(placement.top, placement.offsets[i] + items_[i].bytes);
    }
    return placement;
  }

  // Puts the items, in the given order, into the lowest or the tightest gap where they fit.
  Placement Place(const std::vector<int>& order, Fit fit) const {
    Placement placement;
    placement.offsets.resize(items_.size());
    std::vector<Placed> placed;  // by begin
    placed.reserve(items_.size());
    for (const int index : order) {
      const Item& item = items_[index];
      const int64_t begin = FindGap(placed, item, fit);
      placement.offsets[index] = begin;
      placement.top = std::max(placement.top, begin + item.bytes);
      const auto position = std::upper_bound(
          placed.begin(), placed.end(), begin,
          [](int64_t offset, const Placed& other) { return offset < other.begin; });
      placed.insert(position, {item.first, item.last, begin, begin + item.bytes});
    }
    return placement;
  }

  static int64_t FindGap(const std::vector<Placed>& placed, const Item& item, Fit fit) {
    int64_t end = 0;  // end of the buffers so far that are alive together with the item
    int64_t tightest = std::numeric_limits<int64_t>::max();
    int64_t begin = -1;
    for (const Placed& other : placed) {
      // -1 if the two are never alive together, else 0: most of the search is this loop, where a
      // branch on it would be guessed wrong every other time.
      const int64_t apart = (item.last - other.first < 0) | (other.last - item.first < 0) ? -1 : 0;
      const int64_t gap = (other.begin - end) | apart;
      if (gap >= item.bytes) {
        if (fit == Fit::kLowest) return end;
        if (gap < tightest) {
          tightest = gap;
          begin = end;
        }
      }
      end = std::max(end, other.end & ~apart);
    }
    return begin < 0 ? end : begin;
  }

  // The item that ends at the top of the arena was placed too late: it moves to the front, and all
  // are placed again.
  void Improve(std::vector<int> order, Fit fit, int64_t enough, Placement* best) const {
    const int64_t rounds = std::min(kMaxImprovements, kMaxImprovementComparisons / Comparisons());
    Placement current = *best;
    for (int64_t round = 0; round < rounds && best->top > enough; ++round) {
      const auto is_top = [&](int i) {
        return current.offsets[i] + items_[i].bytes == current.top;
      };
      std::stable_partition(order.begin(), order.end(), is_top);
      current = Place(order, fit);
      if (current.top < best->top) *best = current;
    }
  }

  std::vector<Item> items_;
  int last_moment_ = 0;
};

}  // namespace

OffsetPlan AssignOffsets(const std::vector<Lifetime>& buffers) {
  OffsetPlan plan;
  plan.offsets.resize(buffers.size());
  // Buffers that are always alive are at the bottom; every timeline has the room above to itself.
  int64_t always_bytes = 0;
  std::map<int, std::vector<Item>> items;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Lifetime& buffer = buffers[i];
    const int64_t bytes = Aligned(buffer.bytes);
    if (buffer.timeline == Lifetime::kAllTimelines) {
      plan.offsets[i] = always_bytes;
      always_bytes += bytes;
    } else if (bytes > 0) {
      items[buffer.timeline].push_back({static_cast<int>(i), bytes, buffer.first, buffer.last});
    }
  }
  std::vector<TimelinePlanner> planners;
  int64_t enough = 0;
  for (auto& [timeline, timeline_items] : items) {
    planners.emplace_back(std::move(timeline_items));
    enough = std::max(enough, planners.back().LowerBound());
  }
  int64_t top = 0;
  for (TimelinePlanner& planner : planners) {
    const Placement placement = planner.Run(std::max(enough, top));
    top = std::max(top, placement.top);
    for (size_t i = 0; i < planner.items().size(); ++i) {
      plan.offsets[planner.items()[i].index] = always_bytes + placement.offsets[i];
    }
  }
  plan.arena_bytes = always_bytes + top;
  plan.lower_bound_bytes = always_bytes + enough;
  return plan;
}

}  // namespace zg
