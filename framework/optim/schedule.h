// Learning-rate schedules: factors on the optimizer's lr, functions of the step (the first is 1).
#pragma once

#include <cstdint>

namespace zg::optim {

// Rises linearly from 0 to 1 over `warmup_steps`, then falls along half a cosine to `final_factor`
// at `total_steps` (SGDR, arXiv 1608.03983, without restarts).
double WarmupCosine(int64_t step, int64_t warmup_steps, int64_t total_steps, double final_factor);

}  // namespace zg::optim
