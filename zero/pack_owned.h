// PackOwned: lays whole tensors into flat buckets of equal parts, one for each rank of a shard
// group, so that no part cuts a tensor: the rank of a part owns its tensors. A reduce-scatter of
// such a bucket brings gradients to their owners, and an all-gather brings parameters back.
//
// All parts are padded to the longest one, and the collectives carry the padding. So a bucket grows
// beyond the wanted size until its parts are balanced: whole tensors on many ranks need buckets of
// about as many tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/passes/compile_options.h"

namespace zg::zero {

struct OwnedTensor {
  int64_t elements = 0;  // including the alignment of the next one
  int64_t flops = 0;     // of its update
};

// The rank that owns each tensor, by kGreedy or kBalanced. kBalanced takes the better of greedy and
// MULTIFIT (Coffman, Garey and Johnson 1978): it assigns the tensors, largest first, each to the
// first rank with room, and searches the smallest room, in elements and in flops, with which all
// fit.
std::vector<int> AssignOwners(const std::vector<OwnedTensor>& tensors, int num_owners,
                              Partition partition);

// The largest rank's sum, divided by the mean.
struct Imbalance {
  double elements = 1;
  double flops = 1;
};
Imbalance ImbalanceOf(const std::vector<OwnedTensor>& tensors, const std::vector<int>& owners,
                      int num_owners);

struct OwnedBucket {
  struct Place {
    int tensor = 0;
    int64_t offset = 0;  // in elements
  };
  std::vector<Place> places;  // by offset
  int64_t elements = 0;       // in all parts
};

struct PackOptions {
  int num_owners = 1;
  Partition partition = Partition::kBalanced;
  int64_t bucket_elements = 0;  // a bucket with so many takes no further tensors, if it is balanced
  int64_t part_multiple = 1;    // of elements
};

// Packs consecutive tensors into buckets.
std::vector<OwnedBucket> PackOwned(const std::vector<OwnedTensor>& tensors,
                                   const PackOptions& options);

}  // namespace zg::zero
