// RankMemory: the locations of a compiled graph's values in the arena of one rank.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/ir/graph.h"
#include "framework/passes/plan_memory.h"
#include "framework/runtime/local_elements.h"

namespace zg {

// Bytes [begin, end) of the arena, which belong to a planned buffer.
struct Operand {
  int buffer = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes() const { return end - begin; }
};

// The elements of a stored tensor on this rank, end to end.
struct LocalPart : LocalElements {
  std::byte* data = nullptr;  // memory of the arena's device
};

class RankMemory {
 public:
  RankMemory() = default;
  // The graph and the plan must outlive it.
  RankMemory(const ir::Graph* graph, const MemoryPlan* plan, std::byte* arena, int rank)
      : graph_(graph), plan_(plan), arena_(arena), rank_(rank) {}

  const ir::Graph& graph() const { return *graph_; }
  const MemoryPlan& plan() const { return *plan_; }
  int rank() const { return rank_; }

  Operand OperandOf(const ir::Value* value) const;  // this rank's part of the value
  Operand WholeBuffer(int buffer) const;
  std::byte* AddressOf(const Operand& operand) const { return arena_ + operand.begin; }
  std::byte* AddressOf(const ir::Value* value) const { return AddressOf(OperandOf(value)); }

  LocalPart PartOf(const ir::StoredTensor& tensor) const;

 private:
  const ir::Graph* graph_ = nullptr;
  const MemoryPlan* plan_ = nullptr;
  std::byte* arena_ = nullptr;
  int rank_ = 0;
};

}  // namespace zg
