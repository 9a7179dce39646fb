// FitEstimator: estimates the memory and time of a candidate, closely enough to leave most
// candidates out of a search. The needs of the model itself come from plans of small models, of two
// and of four blocks and one and two samples, and are linear in both. The effect of ZeRO follows
// from the formulas of zero/README.md.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "framework/base/status.h"
#include "framework/plan/job_plan.h"
#include "tools/plan/plan_options.h"

namespace zg::plan {

struct FitEstimate {
  double peak_bytes = 0;
  double step_ms = 0;
};

class FitEstimator {
 public:
  // None for a candidate (fit_candidates.h) that cannot be compiled, such as one with more ranks
  // along tensor than heads.
  std::optional<FitEstimate> Estimate(const PlanOptions& candidate);

 private:
  // A number that is linear in blocks and in samples.
  struct Bilinear {
    double at[2][2] = {};  // for the small plans, [few or more blocks][one or two samples]
    double Value(double blocks, double samples) const;
  };
  struct Part {  // bytes of one rank if nothing is sharded
    double parameters = 0;
    double gradients = 0;
    double optimizer_state = 0;
    double elements = 0;  // of the whole model, not of a rank
    double buckets = 0;
  };
  // The model on a number of ranks along tensor, without ZeRO.
  struct Sketch {
    Part rest, blocks;
    double largest_bucket = 0;  // of gradients, in bytes
    Bilinear activations, compute_ms, tensor_bytes, tensor_messages;
  };

  std::optional<Sketch> MakeSketch(const PlanOptions& candidate) const;

  // Key: ranks along tensor, and whether blocks are recomputed.
  std::map<std::pair<int, bool>, std::optional<Sketch>> sketches_;
};

}  // namespace zg::plan
