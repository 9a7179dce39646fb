// TransfersInPlace: the collectives of training that run in their places, and why they are not
// overlapped with the computation beside them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/passes/storage.h"

namespace zg {

enum class InPlaceReason {
  kOff,            // nothing is started ahead
  kNoComputation,  // nothing is computed between the node that makes the input and the reader of
                   // the result
  kTooLarge,       // the buffers that it would keep alive exceed the limit alone
  kNoRoom,         // or together with those of others in flight there
};

struct TransferInPlace {
  const ir::Node* node = nullptr;
  InPlaceReason reason = InPlaceReason::kOff;
};

// For a graph that overlap-communication was run on with this limit, in the order of the nodes,
// without eval sections. `storage` is the graph's.
std::vector<TransferInPlace> TransfersInPlace(const ir::Graph& graph, const Storage& storage,
                                              int64_t max_bytes);

}  // namespace zg
