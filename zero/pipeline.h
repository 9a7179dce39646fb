// The compiler on one screen: which passes run, in which order, for which ZeRO stage.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/optim/update_rules.h"
#include "framework/passes/compile_options.h"
#include "framework/passes/pass.h"
#include "zero/bucketing.h"
#include "zero/phases.h"

namespace zg::zero {

// `options` must be resolved. Without `update`, the graph has only eval sections. `phase` is set if the
// graph is one of several phases.
std::vector<std::unique_ptr<Pass>> MakePipeline(const CompileOptions& options,
                                                const std::optional<optim::UpdateRules>& update,
                                                BucketOrder order = BucketOrder::kGradients,
                                                const PhaseOptions* phase = nullptr);

}  // namespace zg::zero
