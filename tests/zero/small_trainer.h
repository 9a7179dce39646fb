// A trainer of a small model on in-process ranks, for tests of actions between steps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {

struct SmallTrainerConfig {
  int ranks = 1;
  int stage = 0;
  int64_t micro_batches = 2;
  int64_t hidden = 8;
  bool has_momentum = true;  // otherwise the optimizer has no state
  double lr = 0.1;
  uint64_t seed = 1;
  DType dtype = DType::kF32;
  std::string arithmetic = {};  // TrainerOptions::arithmetic
};

// Trains one step on some fixed data.
Status SmallStep(Trainer& trainer);

// Trains steps, continuing the save that was started after each, until it has ended.
Status StepUntilSaved(Trainer& trainer);

// Runs `body` on every rank with its trainer and returns its results, by rank. A rank's error does
// not end the others.
std::vector<Status> OnSmallTrainers(const SmallTrainerConfig& config,
                                    const std::function<Status(Trainer&)>& body);

// The same; returns the result of rank 0.
Status OnSmallTrainer(const SmallTrainerConfig& config,
                      const std::function<Status(Trainer&)>& body);

// Saves `steps` checkpoints, one after each step.
void SaveSteps(const SmallTrainerConfig& config, const std::string& directory, int steps);

}  // namespace zg::testing
