// Names of training results that passes look for.
#pragma once

namespace zg {

inline constexpr char kLossResult[] = "loss";

// The weight of a micro-batch's loss. If training returns one, the loss of a step is the sum of its
// micro-batches' losses divided by the sum of their weights, and gradients are those of that
// quotient.
inline constexpr char kLossWeightResult[] = "loss_weight";

}  // namespace zg
