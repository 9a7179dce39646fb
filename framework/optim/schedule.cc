#include "framework/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace zg::optim {

double WarmupCosine(int64_t step, int64_t warmup_steps, int64_t total_steps, double final_factor) {
  if (step < warmup_steps) return static_cast<double>(step) / static_cast<double>(warmup_steps);
  const int64_t span = std::max<int64_t>(1, total_steps - warmup_steps);
  const double progress =
      std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(span));
  constexpr double kPi = 3.14159265358979323846;
  return final_factor + (1 - final_factor) * 0.5 * (1 + std::cos(kPi * progress));
}

}  // namespace zg::optim
