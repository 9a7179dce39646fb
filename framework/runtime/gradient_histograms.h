// GradientHistograms: the distribution of each parameter's gradients, as the update reads them:
// before clipping, and in f16 including the loss scale. They are counted while a step runs, because
// their memory is reused afterwards.
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
  // Counts every `every`-th step.
  explicit GradientHistograms(int64_t every) : every_(every) {}

  bool IsDue(int64_t step) const { return step % every_ == 0; }

  // Call it before an instruction runs. Counts the gradients that an update reads on this rank,
  // except those that an earlier rank holds, too.
  void Observe(const RankMemory& memory, const Instruction& instruction);

  // The counts since the last call, by parameter.
  std::map<std::string, ValueHistogram> Take() { return std::exchange(by_parameter_, {}); }

 private:
  const int64_t every_;
  std::map<std::string, ValueHistogram> by_parameter_;
};

}  // namespace zg
