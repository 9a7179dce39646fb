#include "zero/pack_owned.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace zg::zero {
namespace {

// Imbalance in elements below which a bucket may be closed.
constexpr double kBalancedEnough = 1.02;

struct Load {
  double elements = 0;
  double flops = 0;

  void Add(const OwnedTensor& tensor) {
    elements += static_cast<double>(tensor.elements);
    flops += static_cast<double>(tensor.flops);
  }
  bool HasRoomFor(const OwnedTensor& tensor, const Load& room) const {
    return elements + static_cast<double>(tensor.elements) <= room.elements &&
           flops + static_cast<double>(tensor.flops) <= room.flops;
  }
};

Load MeanLoad(const std::vector<OwnedTensor>& tensors, int num_owners) {
  Load sum;
  for (const OwnedTensor& tensor : tensors) sum.Add(tensor);
  return {sum.elements / num_owners, sum.flops / num_owners};
}

std::vector<Load> Loads(const std::vector<OwnedTensor>& tensors, const std::vector<int>& owners,
                        int num_owners) {
  std::vector<Load> loads(num_owners);
  for (size_t i = 0; i < tensors.size(); ++i) loads[owners[i]].Add(tensors[i]);
  return loads;
}

std::vector<int> LargestFirst(const std::vector<OwnedTensor>& tensors) {
  std::vector<int> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return tensors[a].elements > tensors[b].elements; });
  return order;
}

std::vector<int> Greedy(const std::vector<OwnedTensor>& tensors, int num_owners) {
  std::vector<int> owners(tensors.size());
  std::vector<int64_t> sizes(num_owners, 0);
  for (const int i : LargestFirst(tensors)) {
    const auto least = std::min_element(sizes.begin(), sizes.end());
    *least += tensors[i].elements;
    owners[i] = static_cast<int>(least - sizes.begin());
  }
  return owners;
}

// Nothing if they do not fit.
std::optional<std::vector<int>> FirstFit(const std::vector<OwnedTensor>& tensors,
                                         const std::vector<int>& order, int num_owners,
                                         const Load& room) {
  std::vector<int> owners(tensors.size());
  std::vector<Load> loads(num_owners);
  for (const int i : order) {
    const auto owner = std::find_if(loads.begin(), loads.end(), [&](const Load& load) {
      return load.HasRoomFor(tensors[i], room);
    });
    if (owner == loads.end()) return std::nullopt;
    owner->Add(tensors[i]);
    owners[i] = static_cast<int>(owner - loads.begin());
  }
  return owners;
}

double Worst(const Imbalance& imbalance) { return std::max(imbalance.elements, imbalance.flops); }

std::vector<int> Balanced(const std::vector<OwnedTensor>& tensors, int num_owners) {
  constexpr int kTries = 24;
  const std::vector<int> order = LargestFirst(tensors);
  const Load mean = MeanLoad(tensors, num_owners);
  std::vector<int> best = Greedy(tensors, num_owners);
  double high = Worst(ImbalanceOf(tensors, best, num_owners));
  double low = 1;
  for (int i = 0; i < kTries && high - low > 1e-6; ++i) {
    const double factor = i == 0 ? low : (low + high) / 2;  // a perfect packing may exist
    const auto fit =
        FirstFit(tensors, order, num_owners, {factor * mean.elements, factor * mean.flops});
    if (!fit) {
      low = factor;
      continue;
    }
    best = *fit;
    high = Worst(ImbalanceOf(tensors, best, num_owners));
  }
  return best;
}

OwnedBucket MakeBucket(const std::vector<OwnedTensor>& tensors, int first,
                       const std::vector<int>& owners, const PackOptions& options) {
  std::vector<int64_t> ends(options.num_owners, 0);
  for (size_t i = 0; i < owners.size(); ++i) ends[owners[i]] += tensors[first + i].elements;
  const int64_t longest = *std::max_element(ends.begin(), ends.end());
  const int64_t part =
      (longest + options.part_multiple - 1) / options.part_multiple * options.part_multiple;
  OwnedBucket bucket;
  bucket.elements = part * options.num_owners;
  for (int owner = 0; owner < options.num_owners; ++owner) {
    int64_t offset = owner * part;
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] != owner) continue;
      bucket.places.push_back({first + static_cast<int>(i), offset});
      offset += tensors[first + i].elements;
    }
  }
  return bucket;
}

// Tensors [first, last) and their owners.
struct Window {
  int first = 0;
  int last = 0;
  std::vector<int> owners;
  double imbalance = 1;  // in elements
};

Window MakeWindow(const std::vector<OwnedTensor>& tensors, int first, int last,
                  const PackOptions& options) {
  const std::vector<OwnedTensor> own(tensors.begin() + first, tensors.begin() + last);
  Window window = {first, last, AssignOwners(own, options.num_owners, options.partition)};
  window.imbalance = ImbalanceOf(own, window.owners, options.num_owners).elements;
  return window;
}

// Whether no owners could be balanced: one tensor is larger than its share in any distribution.
bool IsHopeless(const std::vector<OwnedTensor>& tensors, int first, int last, int num_owners) {
  double sum = 0, largest = 0;
  for (int i = first; i < last; ++i) {
    sum += static_cast<double>(tensors[i].elements);
    largest = std::max(largest, static_cast<double>(tensors[i].elements));
  }
  return largest * num_owners > kBalancedEnough * sum;
}

}  // namespace

Imbalance ImbalanceOf(const std::vector<OwnedTensor>& tensors, const std::vector<int>& owners,
                      int num_owners) {
  const Load mean = MeanLoad(tensors, num_owners);
  Load most;
  for (const Load& load : Loads(tensors, owners, num_owners)) {
    most = {std::max(most.elements, load.elements), std::max(most.flops, load.flops)};
  }
  Imbalance imbalance;
  if (mean.elements > 0) imbalance.elements = most.elements / mean.elements;
  if (mean.flops > 0) imbalance.flops = most.flops / mean.flops;
  return imbalance;
}

std::vector<int> AssignOwners(const std::vector<OwnedTensor>& tensors, int num_owners,
                              Partition partition) {
  return partition == Partition::kGreedy ? Greedy(tensors, num_owners)
                                         : Balanced(tensors, num_owners);
}

std::vector<OwnedBucket> PackOwned(const std::vector<OwnedTensor>& tensors,
                                   const PackOptions& options) {
  const int count = static_cast<int>(tensors.size());
  std::vector<Window> windows;
  int first = 0;
  int64_t elements = 0;
  for (int last = 1; last <= count; ++last) {
    elements += tensors[last - 1].elements;
    const bool is_full =
        last == count || elements + tensors[last].elements > options.bucket_elements;
    if (!is_full) continue;
    if (last < count && IsHopeless(tensors, first, last, options.num_owners)) continue;
    Window window = MakeWindow(tensors, first, last, options);
    if (last < count && window.imbalance > kBalancedEnough) continue;
    windows.push_back(std::move(window));
    first = last;
    elements = 0;
  }
  // Remaining tensors join the previous window.
  while (windows.size() > 1 && windows.back().imbalance > kBalancedEnough) {
    const int joined_first = windows[windows.size() - 2].first;
    windows.pop_back();
    windows.back() = MakeWindow(tensors, joined_first, count, options);
  }
  std::vector<OwnedBucket> buckets;
  for (const Window& window : windows) {
    buckets.push_back(MakeBucket(tensors, window.first, window.owners, options));
  }
  return buckets;
}

}  // namespace zg::zero
