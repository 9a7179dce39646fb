// Learning-rate schedules: factors on the optimizer's lr, as functions of the step. Every step is
// given its factor, so another schedule needs no other program.
//
//   const optim::Schedule schedule = {optim::Schedule::Decay::kCosine, 100, 1000, 0.1};
//   trainer.set_lr_factor(schedule.factor(step));  // before each step; zg::Training does it by flags
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/base/status.h"

namespace zg::optim {

struct Schedule {
  enum class Decay { kConstant, kLinear, kCosine };

  Decay decay = Decay::kConstant;
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;
  double final_factor = 0.0;  // at total_steps and after; not with kConstant

  // Rises linearly from 0 at step 0 to 1 at `warmup_steps`. From there it stays at 1, or falls to
  // `final_factor` linearly or along half a cosine (SGDR, arXiv 1608.03983, without restarts). The
  // first step is 1.
  double factor(int64_t step) const;
};

// "constant", "linear" or "cosine". Error: any other name.
StatusOr<Schedule::Decay> ParseDecay(std::string_view name);

}  // namespace zg::optim
