// TransfersInPlace: which collectives of training run in their places, and why they are not started
// ahead of what is computed beside them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/ir/graph.h"

namespace zg {

enum class InPlaceReason {
  kOff,            // nothing is started ahead
  kNoComputation,  // between what makes the input and what reads the result nothing is computed
  kTooLarge,       // the buffers that it would keep alive have more than the limit alone
  kNoRoom,         // or together with those of others that run there
};

struct TransferInPlace {
  const ir::Node* node = nullptr;
  InPlaceReason reason = InPlaceReason::kOff;
};

// Of a graph that overlap-communication has been run on with this limit, in the order of the nodes;
// those of eval sections are left out.
std::vector<TransferInPlace> TransfersInPlace(const ir::Graph& graph, int64_t max_bytes);

}  // namespace zg
