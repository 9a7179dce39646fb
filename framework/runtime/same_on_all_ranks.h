// SameOnAllRanks: compares what every rank must give the same: the factor of the learning rate and
// the inputs with placement B. Ranks that differ would train replicas that drift apart.
#pragma once

#include <cstdint>
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
  // those with placement B; nothing does when there are none.
  Status CheckInputs(const InstructionList& list);

 private:
  // The first rank whose word is another than that of rank 0; 0 when there is none.
  StatusOr<int> FirstThatDiffers(const char* name, uint64_t word);
  Status FindDifference(const InputSlot& slot);

  ControlPlane& control_;
  const BoundProgram& program_;
  std::vector<std::vector<int>> slots_;  // of the inputs with placement B, by list
  std::vector<uint64_t> words_;          // by rank
};

}  // namespace zg
