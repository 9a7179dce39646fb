// Jobs for tests of plans, and the comparison of a plan with running the job.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/plan/job_plan.h"
#include "tools/plan/plan_options.h"

namespace zg::plan {

struct GptSizes {
  int64_t layers = 0, heads = 0, channels = 0, context = 0, vocabulary = 0, batch = 1;
};
PlanOptions GptOf(const GptSizes& sizes);  // on one rank, with one micro-batch

PlanOptions TinyGpt();  // two blocks, a batch of two, in several buckets
PlanOptions GptPreset(std::string_view name);

// With a micro-batch for each rank.
PlanOptions OnRanks(PlanOptions options, int ranks, int stage);

JobPlan PlanOrDie(const PlanOptions& options);  // an error fails the test

// Trains a step on in-process ranks and checks that rank 0 holds and sends what the plan says, as
// GoogleTest expectations.
void ExpectRunsAsPlanned(const PlanOptions& options, const JobPlan& plan);

}  // namespace zg::plan
