#include "framework/base/instruction_set.h"

#include <hwy/highway.h>

#include "framework/base/check.h"

namespace zg {
namespace {

InstructionSet Cap() {
  static const InstructionSet cap = [] {
    const StatusOr<InstructionSet> from_environment = InstructionSetFromEnvironment();
    ZG_CHECK(from_environment.ok(), "{}", from_environment.status().message());
    return *from_environment;
  }();
  return cap;
}

// x86-64-v3 and -v4 are sets of features; compilers assume that the whole set is present.
bool ProcessorHas(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx2) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
  }
  if (set == InstructionSet::kAvx512) {
    return ProcessorHas(InstructionSet::kAvx2) && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return set == InstructionSet::kBaseline;
}

// Better Highway targets have lower bits.
void DisableTargetsAbove(InstructionSet set) {
  if (set == InstructionSet::kAvx512) return hwy::DisableTargets(HWY_AVX3 - 1);
  if (set == InstructionSet::kAvx2) return hwy::DisableTargets(HWY_AVX2 - 1);
  hwy::DisableTargets(HWY_SSSE3 | (HWY_SSSE3 - 1));
}

}  // namespace

bool MayUse(InstructionSet set) { return set <= Cap(); }

InstructionSet FindVectorInstructionSet() {
  InstructionSet found = InstructionSet::kBaseline;
  for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (MayUse(set) && ProcessorHas(set)) found = set;
  }
  if (!MayUse(kDefaultInstructionSet)) DisableTargetsAbove(found);
  return found;
}

}  // namespace zg
