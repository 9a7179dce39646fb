// TransferSequence: the collectives of sections that run one after the other: when each of them may
// begin and must have ended, and the bytes that are kept alive by running it beside others.
// overlap-communication plans with it, and it explains why a collective runs in its place.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/passes/storage.h"
#include "framework/passes/transfer_times.h"

namespace zg {

// A collective; positions refer to the order of its sequence.
struct Transfer : TransferTimes {
  ir::Node* node = nullptr;
  std::vector<ir::Node*> assigns;  // assigns of its result, which do no work and may come after the
                                   // wait
};

class TransferSequence {
 public:
  // The sections of a graph that follow each other within a step: all of training, or, with several
  // micro-batches per step, forward and backward as one sequence and update as another; and each
  // eval section.
  static std::vector<std::vector<ir::Section*>> SectionsOf(const ir::Graph& graph);

  // `storage` belongs to the graph; both must outlive this.
  TransferSequence(const ir::Graph& graph, const Storage& storage,
                   const std::vector<ir::Section*>& sections);

  const std::vector<ir::Node*>& order() const { return order_; }
  int end() const { return static_cast<int>(order_.size()); }

  // The transfers that are not started ahead, in the order of their places. The planner sets their
  // starts and waits.
  std::vector<Transfer>& transfers() { return transfers_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }

  bool IsInVariable(const ir::Value* value) const;

  // Whether anything is computed at the positions [begin, end).
  bool HasWorkBetween(int begin, int end) const;

 private:
  int BufferOf(const ir::Value* value) const { return storage_.Of(value).buffer; }
  void Add(ir::Node* node);
  int64_t MostScratchBytes(const ir::Node& node) const;
  int Earliest(const ir::Node& node) const;
  void Needs(const ir::Node& user, Transfer* transfer) const;
  void Needs(const ir::Value& variable, int position, Transfer* transfer) const;

  const ir::Graph& graph_;
  const Storage& storage_;
  std::vector<ir::Node*> order_;
  std::unordered_map<const ir::Node*, int> position_;
  std::vector<Transfer> transfers_;
  std::unordered_map<const ir::Node*, int> needed_;  // by the transfers' nodes
};

}  // namespace zg
