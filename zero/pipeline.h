// The compiler on one screen: which passes run, in which order, for which ZeRO stage.
#pragma once

#include <memory>
#include <vector>

#include "framework/ir/scope_pattern.h"
#include "framework/optim/optimizer.h"
#include "framework/passes/pass.h"
#include "framework/tensor/dtype.h"
#include "zero/accumulate_gradients.h"
#include "zero/bucketing.h"

namespace zg::zero {

struct PipelineOptions {
  bool train = true;                    // false: the graph has eval sections only
  int stage = 0;                        // 0..3
  DType dtype = DType::kF32;            // of what the model computes
  std::vector<ScopePattern> recompute;  // modules
  BucketingOptions bucketing;
  AccumulateGradientsOptions accumulation;
  double max_grad_norm = 0;      // 0: gradients are not clipped
  bool skip_non_finite = false;  // leave out updates that are not finite
  bool update_early = false;
  optim::UpdateRule update;
};

std::vector<std::unique_ptr<Pass>> MakePipeline(const PipelineOptions& options);

}  // namespace zg::zero
