// What the errors say of infinities and NaN among the outputs and the updates of a step: which
// value it is and which tensor is to blame.
#pragma once

#include <functional>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/bound_program.h"
#include "framework/runtime/non_finite.h"

namespace zg {

// Error: the output has an element that is infinite or NaN. `blame` says which gradient the norm of
// all gradients has it from; null where the host cannot read them.
Status CheckFiniteOutput(const OutputSlot& slot, const std::function<std::string()>& blame);

// The first gradient with such an element, among those that this rank holds before the update.
std::string BlamedGradient(const RankMemory& memory, const InstructionList& update);

// The element that an update has made infinite or NaN, and its gradient; empty when there is none.
std::string BlamedUpdate(const RankMemory& memory, const Instruction& instruction);

}  // namespace zg
