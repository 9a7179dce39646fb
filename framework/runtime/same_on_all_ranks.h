// SameOnAllRanks: compares values that must be the same on several ranks: on all ranks the factor of
// the learning rate, the groups that a step updates and the inputs with placement B, and on ranks that
// share micro-batches (Mesh) also the other inputs. Ranks with different values would train replicas
// that drift apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/control_plane.h"
#include "framework/ir/variant.h"
#include "framework/runtime/bound_program.h"

namespace zg {

class SameOnAllRanks {
 public:
  // Both must outlive it.
  SameOnAllRanks(ControlPlane* control, const BoundProgram* program);

  // Every rank must call these, in the same order. The errors, on every rank, name two ranks and
  // their values.

  // Exchanges one word per step. `groups` are the names of those that it updates; "": all.
  Status CheckStep(double lr_factor, const std::string& groups, const Variant& variant);

  // Checks the inputs of a list that is about to run, once they are set. Exchanges one word, the
  // checksum of the inputs with placement B, and one more if ranks share micro-batches; nothing if
  // there are no such inputs. Another error: one of them was not set on a rank.
  Status CheckInputs(const InstructionList& list);

 private:
  // The inputs to compare, and the rank that each rank compares with.
  struct Comparison {
    std::string name;                     // of the exchange
    std::string reason;                   // for an error
    std::vector<int> reference;           // by rank
    std::vector<std::vector<int>> slots;  // by list
  };

  // The first rank whose word differs from that of its reference; -1 if none does.
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
