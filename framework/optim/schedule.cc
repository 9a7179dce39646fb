#include "framework/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace zg::optim {

double Schedule::factor(int64_t step) const {
  if (step < warmup_steps) return static_cast<double>(step) / static_cast<double>(warmup_steps);
  if (decay == Decay::kConstant) return 1.0;
  const int64_t span = std::max<int64_t>(1, total_steps - warmup_steps);
  const double progress =
      std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(span));
  constexpr double kPi = 3.14159265358979323846;
  const double left = decay == Decay::kLinear ? 1 - progress : 0.5 * (1 + std::cos(kPi * progress));
  return final_factor + (1 - final_factor) * left;
}

StatusOr<Schedule::Decay> ParseDecay(std::string_view name) {
  if (name == "constant") return Schedule::Decay::kConstant;
  if (name == "linear") return Schedule::Decay::kLinear;
  if (name == "cosine") return Schedule::Decay::kCosine;
  return InvalidArgument("learning-rate schedule: got '{}', expected constant, linear or cosine",
                         name);
}

}  // namespace zg::optim
