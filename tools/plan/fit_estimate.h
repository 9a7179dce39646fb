// FitEstimator: what a way of training would need and take, near enough to leave most of them out of
// a search. What the model itself needs is taken from plans of small ones, of two and of four blocks
// and one and two samples, and is linear in both; what ZeRO makes of it follows from the formulas of
// zero/README.md.
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
    double at[2][2] = {};  // of the small plans, [few or more blocks][one or two samples]
    double Value(double blocks, double samples) const;
  };
  struct Part {  // bytes of one rank, when nothing is sharded
    double parameters = 0;
    double gradients = 0;
    double optimizer_state = 0;
    double elements = 0;  // of the whole model, not of a rank
    double buckets = 0;
  };
  // The model on some ranks along tensor, without ZeRO.
  struct Sketch {
    Part rest, blocks;
    double largest_bucket = 0;  // of gradients, in bytes
    Bilinear activations, compute_ms, tensor_bytes, tensor_messages;
  };

  std::optional<Sketch> MakeSketch(const PlanOptions& candidate) const;

  // By ranks along tensor and whether blocks are recomputed.
  std::map<std::pair<int, bool>, std::optional<Sketch>> sketches_;
};

}  // namespace zg::plan
