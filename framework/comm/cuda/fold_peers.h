// The sum of one part over ranks whose memory a GPU maps, in one kernel. It reads every rank's
// terms in place, 16 bytes at a time, and adds them in registers, in the order and with the
// rounding of fold_element.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/status.h"
#include "framework/comm/reduction_types.h"

namespace zg {

// The terms, summed in this order.
struct PeerTerms {
  static constexpr int kMaxRanks = 64;

  const void* start = nullptr;        // a sum to continue, of the sum's type; null: none
  const void* terms[kMaxRanks] = {};  // of each rank, in the memory of its GPU
  int num_ranks = 0;
};

// Queues it on `stream`, a cudaStream_t. `output` may be one of the terms if it has the same type.
// Uses packs of 16 bytes if all addresses are multiples of 16, else single elements: same bits.
Status FoldPeersOnCuda(ReductionTypes types, const PeerTerms& inputs, int64_t elements,
                       std::byte* output, void* stream);

}  // namespace zg
