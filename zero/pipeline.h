// The compiler on one screen: which passes run, in which order, for which ZeRO stage.
#pragma once

#include <memory>
#include <vector>

#include "framework/optim/optimizer.h"
#include "framework/passes/pass.h"
#include "zero/bucketing.h"

namespace zg::zero {

struct PipelineOptions {
  bool train = true;  // false: the graph has eval sections only
  int stage = 0;      // 0..3
  BucketingOptions bucketing;
  bool update_early = false;
  optim::UpdateRule update;
};

std::vector<std::unique_ptr<Pass>> MakePipeline(const PipelineOptions& options);

}  // namespace zg::zero
