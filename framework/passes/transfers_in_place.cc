#include "framework/passes/transfers_in_place.h"

#include "framework/passes/transfer_sequence.h"

namespace zg {
namespace {

InPlaceReason ReasonOf(const TransferSequence& sequence, const Transfer& transfer,
                       int64_t max_bytes) {
  if (max_bytes <= 0) return InPlaceReason::kOff;
  if (!sequence.HasWorkBetween(transfer.earliest, transfer.needed)) {
    return InPlaceReason::kNoComputation;
  }
  return transfer.bytes > max_bytes ? InPlaceReason::kTooLarge : InPlaceReason::kNoRoom;
}

}  // namespace

std::vector<TransferInPlace> TransfersInPlace(const ir::Graph& graph, const Storage& storage,
                                              int64_t max_bytes) {
  std::vector<TransferInPlace> in_place;
  for (const std::vector<ir::Section*>& sections : TransferSequence::SectionsOf(graph)) {
    if (sections[0]->kind == ir::SectionKind::kEval) continue;
    const TransferSequence sequence(graph, storage, sections);
    for (const Transfer& transfer : sequence.transfers()) {
      in_place.push_back({transfer.node, ReasonOf(sequence, transfer, max_bytes)});
    }
  }
  return in_place;
}

}  // namespace zg
