#include "framework/plan/transfer_list.h"

#include <algorithm>
#include <unordered_map>

#include "framework/base/format.h"
#include "framework/passes/predict_traffic.h"
#include "framework/passes/storage.h"
#include "framework/passes/transfers_in_place.h"

namespace zg::plan {
namespace {

std::string ReasonText(InPlaceReason reason, int64_t overlap_bytes) {
  switch (reason) {
    case InPlaceReason::kOff:
      return "overlap is off";
    case InPlaceReason::kNoComputation:
      return "nothing is computed between its input and its reader";
    case InPlaceReason::kTooLarge:
      return "its buffers are above the limit of " + FormatBytes(overlap_bytes);
    case InPlaceReason::kNoRoom:
      return "others take up the limit of " + FormatBytes(overlap_bytes);
  }
  return "";
}

int64_t HeldBytes(const ir::Graph& graph, const Storage& storage, const ir::Node& node) {
  if (!ir::IsStart(node)) return 0;
  const auto bytes_of = [&](const ir::Value* value) -> int64_t {
    return storage.IsInVariable(value) ? 0 : graph.LocalType(*value).bytes();
  };
  const ir::Value* const read = node.inputs[0];
  const ir::Value* const result = node.outputs[0];
  if (storage.Of(read).buffer == storage.Of(result).buffer) {  // one is inside the other
    return std::max(bytes_of(read), bytes_of(result));
  }
  return bytes_of(read) + bytes_of(result);
}

}  // namespace

std::vector<PlannedTransfer> ListTransfers(const ir::Graph& graph, const StepOnQueues& step,
                                           int64_t overlap_bytes) {
  const Storage storage = AssignStorage(graph);
  std::unordered_map<const ir::Node*, InPlaceReason> in_place;
  for (const TransferInPlace& transfer : TransfersInPlace(graph, storage, overlap_bytes)) {
    in_place[transfer.node] = transfer.reason;
  }
  std::vector<PlannedTransfer> transfers;
  for (const ir::SectionKind kind :
       {ir::SectionKind::kForward, ir::SectionKind::kBackward, ir::SectionKind::kUpdate}) {
    const ir::Section& section = *graph.section(kind);
    const int64_t runs = RunsPerStep(graph, section);
    for (const ir::Node* node : section.nodes) {
      const int64_t bytes = SentBytes(graph, *node);
      if (bytes == 0) continue;
      const TransferTime& time = step.transfers.at(node);
      PlannedTransfer transfer;
      transfer.section = ir::SectionKindName(kind);
      transfer.op = node->op->name;
      transfer.value = node->outputs[0]->name;
      transfer.calls = runs;
      transfer.bytes = runs * bytes;
      transfer.ms = time.ms;
      transfer.hidden_ms = time.hidden_ms();
      transfer.held_bytes = HeldBytes(graph, storage, *node);
      if (const auto found = in_place.find(node); found != in_place.end()) {
        transfer.reason = ReasonText(found->second, overlap_bytes);
      } else if (time.waited_ms > 0) {
        transfer.reason = "what is computed beside it takes less time";
      }
      transfers.push_back(std::move(transfer));
    }
  }
  return transfers;
}

std::vector<PlannedTransfer> GroupTransfers(const std::vector<PlannedTransfer>& transfers) {
  std::vector<PlannedTransfer> groups;
  for (const PlannedTransfer& transfer : transfers) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const PlannedTransfer& other) {
      return other.section == transfer.section && other.op == transfer.op &&
             other.reason == transfer.reason;
    });
    if (group == groups.end()) {
      groups.push_back({transfer.section, transfer.op, "", 0, 0, 0, 0, 0, transfer.reason});
      group = groups.end() - 1;
    }
    group->calls += transfer.calls;
    group->bytes += transfer.bytes;
    group->ms += transfer.ms;
    group->hidden_ms += transfer.hidden_ms;
    group->held_bytes = std::max(group->held_bytes, transfer.held_bytes);
  }
  return groups;
}

}  // namespace zg::plan
