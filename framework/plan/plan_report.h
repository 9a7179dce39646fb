// PlanReport: a plan, ready to be printed or written in any of its formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/job/flag_value.h"
#include "framework/plan/job_plan.h"
#include "framework/plan/overlap_choice.h"
#include "framework/plan/stage_comparison.h"

namespace zg::plan {

// One setting that fits into the memory.
struct FitWay {
  int64_t peak_bytes = 0;
  double step_ms = 0;
  std::string command;
};

struct PlanReport {
  std::vector<ResolvedFlag> config;
  JobPlan plan;
  OverlapChoices overlap;  // if `overlap` was auto and prices decided
  std::optional<StageComparison> stages;
  // Set if the plan answers what fits: the bytes per rank, and the choices made.
  std::optional<int64_t> fit_bytes;
  std::string fit_choices;
  std::vector<FitWay> fit_front;  // from the fastest to the smallest
  std::string explanation;        // of a value's placement, if requested
};

}  // namespace zg::plan
