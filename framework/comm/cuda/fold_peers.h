// The sum of one part over ranks whose memory a GPU maps, by one kernel: it reads every rank's
// terms where they are, 16 bytes at a time, and adds them in registers, in the order and with the
// rounding of fold_element.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/status.h"
#include "framework/comm/reduction_types.h"

namespace zg {

// What is added up, in this order.
struct PeerTerms {
  static constexpr int kMaxRanks = 64;

  const void* start = nullptr;        // a sum to go on from, of the sum's type; null: none
  const void* terms[kMaxRanks] = {};  // of each rank, in the memory of its GPU
  int num_ranks = 0;
};

// Queues it on `stream`, a cudaStream_t. `output` may be one of the terms, if of the same type. Packs
// of 16 bytes where all addresses are at multiples of them, else element by element: same bits.
Status FoldPeersOnCuda(ReductionTypes types, const PeerTerms& inputs, int64_t elements,
                       std::byte* output, void* stream);

}  // namespace zg
