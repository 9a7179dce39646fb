// Training small models on in-process ranks, for tests that hold runs against each other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/passes/plan_memory.h"
#include "framework/passes/predict_traffic.h"

namespace zg::testing {

enum class TestModel { kMlp, kClassifier, kGpt };

struct RunConfig {
  TestModel model = TestModel::kMlp;
  int ranks = 1;
  int stage = 0;
  int64_t micro_batches = 1;
  int steps = 3;
  int64_t bucket_bytes = 4096;  // several buckets even for small models
  int64_t shard_min_elements = 0;
  bool update_early = false;
};

// What a run ends with, on rank 0 unless it says otherwise.
struct RunResult {
  std::vector<float> losses;
  std::string param_sha256;
  std::string optimizer_sha256;
  double param_sum = 0;
  float eval_loss = 0;
  CategoryBytes predicted = {};
  CategoryBytes measured = {};
  int64_t predicted_peak = 0;
  int64_t measured_peak = 0;
  TrafficCounters measured_traffic = {};                      // of all steps, before the eval
  std::map<std::string, PredictedTraffic> predicted_traffic;  // of one step
  std::string ir;
};

StatusOr<RunResult> Train(const RunConfig& config);

}  // namespace zg::testing
