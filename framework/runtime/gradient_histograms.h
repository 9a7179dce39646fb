// GradientHistograms: how the gradients of each parameter are distributed, as the update reads them:
// before clipping, and in f16 with the loss scale in them. They are counted while a step runs,
// because afterwards their memory is another's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "framework/base/value_histogram.h"
#include "framework/runtime/bound_program.h"

namespace zg {

class GradientHistograms {
 public:
  // Of every `every`-th step.
  explicit GradientHistograms(int64_t every) : every_(every) {}

  bool IsDue(int64_t step) const { return step % every_ == 0; }

  // Call it before an instruction runs. Counts the gradients that an update reads, as far as they
  // lie on this rank and not also on one before it.
  void Observe(const RankMemory& memory, const Instruction& instruction);

  // What was counted since the last call, by parameter.
  std::map<std::string, ValueHistogram> Take() { return std::exchange(by_parameter_, {}); }

 private:
  const int64_t every_;
  std::map<std::string, ValueHistogram> by_parameter_;
};

}  // namespace zg
