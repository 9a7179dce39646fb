// ChooseOverlap: what `overlap` auto means. With measured prices of the transfers between the job's
// ranks (plan/price_list.h) it is the limit for whose program the shortest step is predicted; without
// them, a rule (passes/overlap_communication.h).
#pragma once

#include "framework/base/status.h"
#include "framework/plan/overlap_choice.h"
#include "framework/plan/time_estimate.h"
#include "zero/compile.h"

namespace zg {

// Tries no overlap, limits from one bucket on, each twice the last, until one is as fast as none, and
// none. `tried` is empty, and `options->overlap_bytes` by the rule, if the machine has no prices
// of transfers between these ranks; both stay unchanged if it is not auto. Limits whose programs need
// more than `options->max_memory_bytes` are left out, by the rule too; if no program fits, overlap is
// off, and compiling says what is needed. Errors: those of zero::Compile.
StatusOr<plan::OverlapChoices> ChooseOverlap(const Graph& graph, const Mesh& mesh,
                                             const Target& target, const plan::Machine& machine,
                                             bool sends_messages, CompileOptions* options);

}  // namespace zg
