// Trains a small model (small_models.h) on in-process ranks, for tests that compare runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/tensor/dtype.h"

namespace zg::testing {

inline constexpr size_t kSmallSteps = 2;

struct SmallTraining {
  int64_t micro_batches = 6;  // per step, over all ranks
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  bool recomputes = false;  // all activations of modules
  int threads = 1;          // per rank
  double max_grad_norm = 0;
};

struct SmallTrained {
  std::vector<float> losses;
  std::string param_sha256;
  std::string optimizer_sha256;
  int64_t workspace_bytes = 0;  // of rank 0
};

// The result of rank 0, after kSmallSteps from the reference's parameters. An error fails the test,
// and so does memory that differs from the plan.
SmallTrained TrainSmallModel(const std::string& name, const SmallTraining& training);

std::vector<std::string> SmallModelNames();

}  // namespace zg::testing
