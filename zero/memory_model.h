// The memory and traffic of model states by the formulas of the ZeRO paper (Rajbhandari et al.
// 2019, arXiv 1910.02054, sections 3.1, 5 and 7, figure 1 and table 1): no model, no padding, no
// activations. The plan gives the real needs of a graph (framework/passes/plan_memory.h).
#pragma once

#include <cstdint>

#include "framework/base/status.h"

namespace zg::zero {

// Bytes that training keeps for one parameter.
struct BytesPerParameter {
  double parameters = 0;
  double gradients = 0;
  double optimizer_state = 0;  // including the master copy of mixed precision
};

// 16-bit parameters and gradients; f32 parameters, momentum and variance: the paper's K = 12.
inline constexpr BytesPerParameter kMixedPrecisionAdam = {2, 2, 12};

struct ModelStates {
  double num_parameters = 0;  // the paper's Psi
  int64_t ranks = 1;          // the paper's N_d
  int stage = 0;              // 0: plain data parallelism
  BytesPerParameter bytes = kMixedPrecisionAdam;
};

struct ModelStateBytes {
  double parameters = 0;
  double gradients = 0;
  double optimizer_state = 0;
  double total() const { return parameters + gradients + optimizer_state; }
};

// Bytes on one rank. Errors: a stage other than 0 to 3, fewer than one rank, parameters not > 0.
StatusOr<ModelStateBytes> PredictModelStates(const ModelStates& states);

// Elements that one rank sends per step, in the limit of many ranks: twice the parameters, at stage
// 3 three times. The same errors.
StatusOr<double> PredictElementsSent(const ModelStates& states);

}  // namespace zg::zero
