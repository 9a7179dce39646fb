// The effect of passes between the gradients and the update: each check runs the graphs of one pass
// and returns the text of a failure, empty if there is none.
#pragma once

#include <string>

#include "framework/ir/attribute.h"
#include "tests/testing/run_comparison.h"

namespace zg::testing {

// The factor of the loss with which checks of scale-loss and clip-gradients start, as the contents
// of the tensor "loss_scaler".
HeapTensor InitialLossScaler();

// append-update with these options: gradients have the same bits, and parameters follow the
// optimizer's formulas in double precision.
std::string CheckAppendUpdate(RunComparison& runs, const ir::Attributes& options);

// For gradients that are summed or rounded in another way: outputs of the first step, which reads
// the same parameters, have the same bits; gradients and tensors agree within a share of the
// largest gradient.
std::string CheckOtherSums(RunComparison& runs, double tolerance);

// scale-loss: gradients are larger by the scale, and nothing else changes.
std::string CheckScaleLoss(RunComparison& runs);

// clip-gradients with these options: the norm is that of the gradients, and updates are those of the
// gradients times the factor that follows from it.
std::string CheckClipGradients(RunComparison& runs, const ir::Attributes& options);

}  // namespace zg::testing
