// Learning-rate schedules: factors on the optimizer's lr, functions of the step. A factor is given
// to every step anew, so that another schedule needs no other program.
//
//   const optim::Schedule schedule = {optim::Schedule::Decay::kCosine, 100, 1000, 0.1};
//   trainer.set_lr_factor(schedule.factor(step));
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

  // Rises linearly from 0 at step 0 to 1 at `warmup_steps`; from there stays, or falls to
  // `final_factor` along a line or half a cosine (SGDR, arXiv 1608.03983, without restarts). The
  // first step is 1.
  double factor(int64_t step) const;
};

// "constant", "linear" or "cosine". Error: another name.
StatusOr<Schedule::Decay> ParseDecay(std::string_view name);

}  // namespace zg::optim
