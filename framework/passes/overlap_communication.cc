#include "framework/passes/overlap_communication.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/ops/op_names.h"
#include "framework/passes/predict_traffic.h"
#include "framework/passes/storage.h"
#include "framework/passes/transfer_sequence.h"
#include "framework/passes/transfer_times.h"

namespace zg {
namespace {

// Adds a wait for the first of `awaited`; the readers then read the wait's result.
void AddWait(ir::Graph* graph, ir::Section* section, ir::Node* before,
             std::vector<ir::Value*> awaited, const std::string& scope,
             std::vector<ir::Node*> readers) {
  ir::Value* const value = awaited[0];
  ir::Node* const wait =
      graph->AddNode(section, {op_names::kWait, std::move(awaited), {}, scope, value->name}, before)
          .value();
  wait->outputs[0]->sbp = value->sbp;
  for (ir::Node* reader : readers) {
    for (size_t i = 0; i < reader->inputs.size(); ++i) {
      if (reader->inputs[i] != value) continue;
      graph->ReplaceInput(reader, static_cast<int>(i), wait->outputs[0]);
    }
  }
}

class Sequence {
 public:
  Sequence(ir::Graph* graph, const Storage& storage, const std::vector<ir::Section*>& sections)
      : graph_(*graph), sequence_(*graph, storage, sections), last_section_(sections.back()) {}

  bool Run(int64_t max_bytes) {
    std::vector<TransferTimes*> times;
    for (Transfer& transfer : sequence_.transfers()) times.push_back(&transfer);
    PlanTransferTimes(max_bytes, sequence_.end(), std::move(times));
    for (const Transfer& transfer : sequence_.transfers()) {
      const bool keeps_its_turn = transfer.start < transfer.wait && IsOvertaken(transfer);
      if (HasWorkBeside(transfer) || keeps_its_turn) started_.push_back(transfer);
    }
    Apply();
    return !started_.empty();
  }

 private:
  bool HasWorkBeside(const Transfer& transfer) const {
    return sequence_.HasWorkBetween(transfer.start, transfer.wait);
  }

  // Whether another transfer, started after it, would run before it if it ran in its place.
  bool IsOvertaken(const Transfer& transfer) const {
    const std::vector<Transfer>& all = sequence_.transfers();
    return std::any_of(all.begin(), all.end(), [&](const Transfer& other) {
      return other.place > transfer.place && other.start < transfer.place;
    });
  }

  // Applies the plan. Transfers that are not moved keep their place, and the others go before it.
  void Apply() {
    for (const Transfer& transfer : started_) {
      if (transfer.start < transfer.place) moved_.insert(transfer.node);
      moved_.insert(transfer.assigns.begin(), transfer.assigns.end());
    }
    std::vector<std::pair<int, Transfer*>> waits;
    std::vector<std::pair<int, Transfer*>> starts;
    for (Transfer& transfer : started_) {
      waits.emplace_back(transfer.wait, &transfer);
      starts.emplace_back(transfer.start, &transfer);
    }
    const auto by_position = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(waits.begin(), waits.end(), by_position);
    std::stable_sort(starts.begin(), starts.end(), by_position);
    auto next_start = starts.begin();
    for (const auto& [position, transfer] : waits) {
      for (; next_start != starts.end() && next_start->first < position; ++next_start) {
        Start(next_start->second);
      }
      Wait(transfer);
    }
  }

  // The node before which a node planned for a position is inserted; null: at the end.
  ir::Node* Anchor(int position) const {
    const std::vector<ir::Node*>& order = sequence_.order();
    while (position < sequence_.end() && moved_.count(order[position]) != 0) ++position;
    return position < sequence_.end() ? order[position] : nullptr;
  }

  void MoveTo(ir::Node* node, ir::Node* anchor) {
    if (anchor != nullptr) return graph_.MoveBefore(node, anchor);
    if (last_section_->nodes.back() != node) graph_.MoveAfter(node, last_section_->nodes.back());
  }

  void Start(Transfer* transfer) {
    transfer->node->attributes.Set("start", true);
    if (moved_.count(transfer->node) != 0) MoveTo(transfer->node, Anchor(transfer->start));
  }

  void Wait(Transfer* transfer) {
    ir::Node* const anchor = Anchor(transfer->wait);
    ir::Value* const result = transfer->node->outputs[0];
    std::vector<ir::Value*> awaited = {result};
    for (ir::Value* input : transfer->node->inputs) {
      if (!sequence_.IsInVariable(input)) awaited.push_back(input);
    }
    ir::Section* const section = anchor != nullptr ? anchor->section : last_section_;
    AddWait(&graph_, section, anchor, std::move(awaited), transfer->node->scope, result->users);
    for (ir::Node* assign : transfer->assigns) MoveTo(assign, anchor);
  }

  ir::Graph& graph_;
  TransferSequence sequence_;
  ir::Section* const last_section_;
  std::vector<Transfer> started_;  // in the order of their places
  std::unordered_set<const ir::Node*> moved_;
};

// Gathers into variables for which the next step's forward waits.
class GathersIntoNextStep {
 public:
  GathersIntoNextStep(ir::Graph* graph, const Storage* storage)
      : graph_(*graph), storage_(*storage) {
    for (const ir::SectionKind kind : {ir::SectionKind::kForward, ir::SectionKind::kBackward}) {
      for (ir::Node* node : graph_.section(kind)->nodes) {
        for (const ir::Value* input : node->inputs) {
          if (ir::IsVariable(*input)) readers_[input].push_back(node);
        }
        position_[node] = static_cast<int>(position_.size());
      }
    }
  }

  // Starts them; returns whether there are any.
  bool Run() {
    std::vector<std::pair<int, ir::Node*>> in_update;  // key: their first reader
    bool starts_any = false;
    for (const ir::SectionKind kind : {ir::SectionKind::kBackward, ir::SectionKind::kUpdate}) {
      ir::Section* const section = graph_.section(kind);
      for (ir::Node* node : std::vector<ir::Node*>(section->nodes)) {
        ir::Node* const first_reader = FirstReader(*node);
        if (first_reader == nullptr) continue;
        WaitBefore(first_reader, node->outputs[0]->users[0]->inputs[0]);
        node->attributes.Set("start", true);
        starts_any = true;
        if (kind == ir::SectionKind::kUpdate)
          in_update.emplace_back(position_.at(first_reader), node);
      }
    }
    std::stable_sort(in_update.begin(), in_update.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [position, node] : in_update) {
      ir::Node* const assign = node->outputs[0]->users[0];
      for (ir::Node* moved : {node, assign}) {
        ir::Node* const last = moved->section->nodes.back();
        if (last != moved) graph_.MoveAfter(moved, last);
      }
    }
    return starts_any;
  }

 private:
  bool LiesIn(const ir::Value* value, const ir::Value* variable) const {
    return storage_.buffers[storage_.Of(value).buffer].root == variable;
  }

  // If the node gathers a variable in place, its first reader in the next step; null if there is
  // none, or if the node is not such a gather.
  ir::Node* FirstReader(const ir::Node& node) const {
    const bool transfers =
        node.op->traits.kind == ir::OpKind::kBoxing && SentBytes(graph_, node) > 0;
    if (!transfers || node.outputs[0]->users.size() != 1) return nullptr;
    const ir::Node& assign = *node.outputs[0]->users[0];
    if (assign.op->traits.kind != ir::OpKind::kAssign || assign.section != node.section)
      return nullptr;
    const ir::Value* variable = assign.inputs[0];
    if (!LiesIn(node.inputs[0], variable) || !LiesIn(node.outputs[0], variable)) return nullptr;
    const int place = graph_.IndexOf(&assign);
    for (const ir::Node* user : variable->users) {
      if (user->section == assign.section && graph_.IndexOf(user) > place) return nullptr;
    }
    const auto readers = readers_.find(variable);
    if (readers == readers_.end()) return nullptr;
    for (ir::Node* reader : readers->second) {
      if (reader->op->traits.kind != ir::OpKind::kAssign) return reader;
    }
    return nullptr;
  }

  void WaitBefore(ir::Node* first, ir::Value* variable) {
    std::vector<ir::Node*> readers = readers_.at(variable);
    readers.erase(std::remove_if(readers.begin(), readers.end(),
                                 [](const ir::Node* reader) {
                                   return reader->op->traits.kind == ir::OpKind::kAssign;
                                 }),
                  readers.end());
    AddWait(&graph_, first->section, first, {variable}, first->scope, readers);
  }

  ir::Graph& graph_;
  const Storage& storage_;
  std::unordered_map<const ir::Value*, std::vector<ir::Node*>> readers_;  // readers in their order
  std::unordered_map<const ir::Node*, int> position_;
};

}  // namespace

int64_t OverlapBytes(const CompileOptions& options, bool sends_messages) {
  if (options.overlap_bytes != CompileOptions::kAuto) return options.overlap_bytes;
  return sends_messages ? 4 * options.zero.bucket_bytes : 0;
}

bool Overlaps(const ir::Graph& graph) {
  const std::vector<ir::Node*> boxing = graph.NodesOf(ir::OpKind::kBoxing);
  return std::any_of(boxing.begin(), boxing.end(),
                     [](const ir::Node* node) { return ir::IsStart(*node); });
}

StatusOr<bool> OverlapCommunication::Run(ir::Graph& graph) const {
  if (max_bytes_ <= 0 || Overlaps(graph)) return false;
  const Storage before = AssignStorage(graph);
  bool changed = GathersIntoNextStep(&graph, &before).Run();
  const Storage storage = AssignStorage(graph);
  for (const std::vector<ir::Section*>& sections : TransferSequence::SectionsOf(graph)) {
    changed = Sequence(&graph, storage, sections).Run(max_bytes_) || changed;
  }
  return changed;
}

}  // namespace zg
