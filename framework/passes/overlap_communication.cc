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
#include "framework/passes/transfer_times.h"

namespace zg {
namespace {

// A collective of a sequence of nodes. Positions are those before anything is moved.
struct Transfer : TransferTimes {
  ir::Node* node = nullptr;
  std::vector<ir::Node*> assigns;  // of its result, without work, which may stand behind the wait
};

// A wait for the first of `awaited`, of which the readers then read what the wait gives.
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
  Sequence(ir::Graph* graph, const Storage* storage, const std::vector<ir::Section*>& sections)
      : graph_(*graph), storage_(*storage), last_section_(sections.back()) {
    for (ir::Section* section : sections) {
      order_.insert(order_.end(), section->nodes.begin(), section->nodes.end());
    }
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<int>(i);
    for (ir::Node* node : order_) {
      if (!ir::IsStart(*node) && SentBytes(graph_, *node) > 0) Add(node);
    }
  }

  bool Run(int64_t max_bytes) {
    std::vector<TransferTimes*> times;
    for (Transfer& transfer : transfers_) times.push_back(&transfer);
    PlanTransferTimes(max_bytes, end(), std::move(times));
    std::vector<Transfer> started;
    for (const Transfer& transfer : transfers_) {
      const bool keeps_its_turn = transfer.start < transfer.wait && IsOvertaken(transfer);
      if (HasWorkBeside(transfer) || keeps_its_turn) started.push_back(transfer);
    }
    transfers_ = std::move(started);
    Apply();
    return !transfers_.empty();
  }

 private:
  int end() const { return static_cast<int>(order_.size()); }

  bool IsInVariable(const ir::Value* value) const {
    return ir::IsVariable(*storage_.buffers[storage_.Of(value).buffer].root);
  }
  int BufferOf(const ir::Value* value) const { return storage_.Of(value).buffer; }

  void Add(ir::Node* node) {
    Transfer transfer;
    transfer.node = node;
    transfer.place = transfer.earliest = position_.at(node);
    const ir::Value* result = node->outputs[0];
    if (!IsInVariable(result)) transfer.earliest = Earliest(*node);
    transfer.needed = end();
    for (ir::Node* user : result->users) {
      const bool does_nothing = user->op->traits.kind == ir::OpKind::kAssign &&
                                BufferOf(user->inputs[0]) == BufferOf(result);
      if (does_nothing && position_.count(user) != 0) {
        transfer.assigns.push_back(user);
        Needs(*user->inputs[0], position_.at(user), &transfer);
      } else {
        Needs(*user, &transfer);
      }
    }
    const ir::Value* read = node->inputs[0];
    if (BufferOf(read) != BufferOf(result)) {
      if (!IsInVariable(read)) transfer.bytes += graph_.LocalType(*read).bytes();
      if (transfer.is_ahead()) transfer.bytes += graph_.LocalType(*result).bytes();
    }
    transfer.bytes += MostScratchBytes(*node);
    transfers_.push_back(std::move(transfer));
  }

  // What the kernel may need until the wait: parts that are brought to the front, or a sum of which
  // several ranks keep copies.
  int64_t MostScratchBytes(const ir::Node& node) const {
    const bool is_flat = node.inputs[0]->type.shape.num_dims() == 1;
    if (is_flat && ir::BoxingAxes(node).size() == 1) return 0;
    return std::max(graph_.LocalType(*node.inputs[0]).bytes(),
                    graph_.LocalType(*node.outputs[0]).bytes());
  }

  // The first position from which on all that the node reads is there.
  int Earliest(const ir::Node& node) const {
    int earliest = 0;
    const auto behind = [&](const ir::Node* other) {
      const auto found = position_.find(other);
      if (found != position_.end() && found->second < position_.at(&node)) {
        earliest = std::max(earliest, found->second + 1);
      }
    };
    for (const ir::Value* input : node.inputs) {
      behind(input->producer);
      for (const ir::Node* user : input->users) {
        if (user->op->traits.kind == ir::OpKind::kAssign && user->inputs[0] == input) behind(user);
      }
    }
    return earliest;
  }

  void Needs(const ir::Node& user, Transfer* transfer) const {
    const auto found = position_.find(&user);
    if (found != position_.end()) transfer->needed = std::min(transfer->needed, found->second);
  }
  // What reads the variable after the position.
  void Needs(const ir::Value& variable, int position, Transfer* transfer) const {
    for (const ir::Node* user : variable.users) {
      const auto found = position_.find(user);
      if (found != position_.end() && found->second > position) Needs(*user, transfer);
    }
  }

  bool HasWorkBeside(const Transfer& transfer) const {
    return std::any_of(order_.begin() + transfer.start, order_.begin() + transfer.wait,
                       [&](const ir::Node* node) {
                         return node->op->traits.has_kernel() && SentBytes(graph_, *node) == 0;
                       });
  }

  // Whether another one, started behind it, would come before it if it ran in its place.
  bool IsOvertaken(const Transfer& transfer) const {
    return std::any_of(transfers_.begin(), transfers_.end(), [&](const Transfer& other) {
      return other.place > transfer.place && other.start < transfer.place;
    });
  }

  // Makes the plan true. What stands still keeps its place, the others go before it.
  void Apply() {
    for (const Transfer& transfer : transfers_) {
      if (transfer.start < transfer.place) moved_.insert(transfer.node);
      moved_.insert(transfer.assigns.begin(), transfer.assigns.end());
    }
    std::vector<std::pair<int, Transfer*>> waits;
    std::vector<std::pair<int, Transfer*>> starts;
    for (Transfer& transfer : transfers_) {
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

  // The node before which what is planned at a position goes; null: at the end.
  ir::Node* Anchor(int position) const {
    while (position < end() && moved_.count(order_[position]) != 0) ++position;
    return position < end() ? order_[position] : nullptr;
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
      if (!IsInVariable(input)) awaited.push_back(input);
    }
    ir::Section* const section = anchor != nullptr ? anchor->section : last_section_;
    AddWait(&graph_, section, anchor, std::move(awaited), transfer->node->scope, result->users);
    for (ir::Node* assign : transfer->assigns) MoveTo(assign, anchor);
  }

  ir::Graph& graph_;
  const Storage& storage_;
  ir::Section* const last_section_;
  std::vector<ir::Node*> order_;
  std::unordered_map<const ir::Node*, int> position_;
  std::vector<Transfer> transfers_;  // in the order of their places
  std::unordered_set<const ir::Node*> moved_;
};

// Gathers into variables that the next step's forward waits for.
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

  // Starts them; whether there are any.
  bool Run() {
    std::vector<std::pair<int, ir::Node*>> in_update;  // by their first reader
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

  // What the next step first reads the gathered variable with; null: nothing, or the node is no such
  // gather.
  ir::Node* FirstReader(const ir::Node& node) const {
    const bool gathers = node.op->name == op_names::kAllGather && SentBytes(graph_, node) > 0;
    if (!gathers || node.outputs[0]->users.size() != 1) return nullptr;
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
  std::unordered_map<const ir::Value*, std::vector<ir::Node*>> readers_;  // in their order
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
  ir::Section* const forward = graph.section(ir::SectionKind::kForward);
  ir::Section* const backward = graph.section(ir::SectionKind::kBackward);
  ir::Section* const update = graph.section(ir::SectionKind::kUpdate);
  std::vector<std::vector<ir::Section*>> sequences = {{forward, backward}, {update}};
  if (graph.micro_batches() == graph.mesh().num_data_ranks()) {
    sequences = {{forward, backward, update}};
  }
  for (const auto& section : graph.sections()) {
    if (section->kind == ir::SectionKind::kEval) sequences.push_back({section.get()});
  }
  for (const std::vector<ir::Section*>& sections : sequences) {
    changed = Sequence(&graph, &storage, sections).Run(max_bytes_) || changed;
  }
  return changed;
}

}  // namespace zg
