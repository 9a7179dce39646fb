// The error texts about infinities and NaN in the outputs and updates of a step: which value it is
// and which tensor caused it.
#pragma once

#include <functional>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/bound_program.h"
#include "framework/runtime/non_finite.h"

namespace zg {

// Error: the output has an element that is infinite or NaN. `blame` names the gradient that made
// the norm of all gradients non-finite; null if the host cannot read gradients.
Status CheckFiniteOutput(const OutputSlot& slot, const std::function<std::string()>& blame);

// The first gradient with such an element, among those that this rank holds before the update.
std::string BlamedGradient(const RankMemory& memory, const InstructionList& update);

// The element that an update has made infinite or NaN, and its gradient; empty if there is none.
std::string BlamedUpdate(const RankMemory& memory, const Instruction& instruction);

}  // namespace zg
