#include "framework/passes/transfer_sequence.h"

#include <algorithm>
#include <utility>

#include "framework/passes/predict_traffic.h"

namespace zg {

std::vector<std::vector<ir::Section*>> TransferSequence::SectionsOf(const ir::Graph& graph) {
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
  return sequences;
}

TransferSequence::TransferSequence(const ir::Graph& graph, const Storage& storage,
                                   const std::vector<ir::Section*>& sections)
    : graph_(graph), storage_(storage) {
  for (const ir::Section* section : sections) {
    order_.insert(order_.end(), section->nodes.begin(), section->nodes.end());
  }
  for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<int>(i);
  for (ir::Node* node : order_) {
    if (!ir::IsStart(*node) && SentBytes(graph_, *node) > 0) Add(node);
  }
}

bool TransferSequence::IsInVariable(const ir::Value* value) const {
  // The result of a wait, which is newer than the storage, is where the awaited value is.
  while (value->producer->op->traits.kind == ir::OpKind::kWait) value = value->producer->inputs[0];
  return storage_.IsInVariable(value);
}

bool TransferSequence::HasWorkBetween(int begin, int end) const {
  return std::any_of(order_.begin() + begin, order_.begin() + end, [&](const ir::Node* node) {
    return node->op->traits.has_kernel() && SentBytes(graph_, *node) == 0;
  });
}

void TransferSequence::Add(ir::Node* node) {
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
  needed_[node] = transfer.needed;
  transfers_.push_back(std::move(transfer));
}

// The scratch memory that the kernel may need until the wait: for parts that are moved to the
// front, or for a sum of which several ranks keep copies.
int64_t TransferSequence::MostScratchBytes(const ir::Node& node) const {
  const bool is_flat = node.inputs[0]->type.shape.num_dims() == 1;
  if (is_flat && ir::BoxingAxes(node).size() == 1) return 0;
  return std::max(graph_.LocalType(*node.inputs[0]).bytes(),
                  graph_.LocalType(*node.outputs[0]).bytes());
}

// The first position at which all inputs of the node are available, however late a transfer that
// gives one of them is waited for.
int TransferSequence::Earliest(const ir::Node& node) const {
  int earliest = 0;
  const auto behind = [&](const ir::Node* other) {
    const auto found = position_.find(other);
    if (found != position_.end() && found->second < position_.at(&node)) {
      earliest = std::max(earliest, found->second + 1);
    }
  };
  for (const ir::Value* input : node.inputs) {
    behind(input->producer);
    if (const auto found = needed_.find(input->producer); found != needed_.end()) {
      earliest = std::max(earliest, found->second);
    }
    for (const ir::Node* user : input->users) {
      if (user->op->traits.kind == ir::OpKind::kAssign && user->inputs[0] == input) behind(user);
    }
  }
  return earliest;
}

void TransferSequence::Needs(const ir::Node& user, Transfer* transfer) const {
  const auto found = position_.find(&user);
  if (found != position_.end()) transfer->needed = std::min(transfer->needed, found->second);
}

// The readers of the variable after the position.
void TransferSequence::Needs(const ir::Value& variable, int position, Transfer* transfer) const {
  for (const ir::Node* user : variable.users) {
    const auto found = position_.find(user);
    if (found != position_.end() && found->second > position) Needs(*user, transfer);
  }
}

}  // namespace zg
