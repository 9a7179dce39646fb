// Names of results of training that passes look for.
#pragma once

namespace zg {

inline constexpr char kLossResult[] = "loss";

// The weight of a micro-batch's loss. Where training hands one out, the loss of a step is the sum of
// its micro-batches' losses divided by that of their weights, and gradients are those of that.
inline constexpr char kLossWeightResult[] = "loss_weight";

}  // namespace zg
