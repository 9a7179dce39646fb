// SameOnAllRanks: compares what ranks must give the same: all of them the factor of the learning rate
// and the inputs with placement B, and those that share micro-batches (Mesh) the other inputs, too.
// Ranks that differ would train replicas that drift apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/control_plane.h"
#include "framework/runtime/bound_program.h"

namespace zg {

class SameOnAllRanks {
 public:
  // Both must outlive it.
  SameOnAllRanks(ControlPlane* control, const BoundProgram* program);

  // Every rank must call these, in the same order. The errors, on every rank, name two ranks and
  // their values.

  // One word travels per step.
  Status CheckFactor(double lr_factor);

  // The inputs of a list that is about to run, once they are set. One word travels, the checksum of
  // those with placement B, and one more where ranks share micro-batches; nothing does when there are
  // no such inputs.
  Status CheckInputs(const InstructionList& list);

 private:
  // Which inputs ranks must give the same, and as which other rank.
  struct Comparison {
    std::string name;                     // of what travels
    std::string reason;                   // of an error
    std::vector<int> reference;           // by rank
    std::vector<std::vector<int>> slots;  // by list
  };

  // The first rank whose word is another than that of its reference; none: -1.
  StatusOr<int> FirstThatDiffers(std::string_view name, const std::vector<int>& reference,
                                 uint64_t word);
  Status Compare(const Comparison& comparison, const InstructionList& list);
  Status FindDifference(const Comparison& comparison, const InputSlot& slot);

  ControlPlane& control_;
  const BoundProgram& program_;
  std::vector<Comparison> comparisons_;
  std::vector<uint64_t> words_;  // by rank
};

}  // namespace zg
