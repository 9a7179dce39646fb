// The instruction set that kernels may use: the processor's, up to the cap of ZG_INSTRUCTION_SET.
//
// All code that depends on the processor asks here, so that one machine can reproduce the results
// of another. Results in f32 have the same bits with every instruction set.
#pragma once

#include "framework/base/env.h"

namespace zg {

// Whether the cap allows `set`, which the processor may lack. The environment is read once; a cap
// that cannot be parsed ends the program, unless CheckEnvironment() has reported it before.
bool MayUse(InstructionSet set);

// The widest vectors, out of kBaseline, kAvx2 and kAvx512, that the processor has and that may be
// used.
InstructionSet FindVectorInstructionSet();

// The same, found once. Inline, because kernels ask before each small block.
inline InstructionSet VectorInstructionSet() {
  static const InstructionSet widest = FindVectorInstructionSet();
  return widest;
}

}  // namespace zg

// HWY_DYNAMIC_DISPATCH, up to the cap: Highway has to be told about it first.
#define ZG_HWY_DISPATCH(function) (::zg::VectorInstructionSet(), HWY_DYNAMIC_DISPATCH(function))
