// Checks whether a pass kept the results of a program: both graphs run on virtual ranks
// (ranked_run.h) from the same variables and data, and must give the same outputs, gradients and
// variables after two steps, bit by bit. In the second graph, no node may depend on a value that
// another overwrites, and tensors that are copies must be copies. Exceptions:
//
//   average-eval-results   losses of eval sections are divided by the ranks
//   mixed-precision        what it is for: outputs agree within 16-bit rounding
//   master-weights         sums of several micro-batches are rounded to 16 bits
//   accumulate-gradients   with reduce_every="step" sums have another order
//   build-backward         the loss is the mean of the micro-batches' losses, or their sum over
//                          that of the weights; in f32, gradients are compared with differences
//                          of the mean loss
//   append-update          gradients have the same bits; parameters follow the optimizer's formulas
//                          in double precision
//   scale-loss             gradients are larger by the scale
//   clip-gradients         the norm is that of the gradients, over the loss_weight; updates are
//                          those of the gradients times the factor
//   eval-weights           evals compute from the weights that the updates' eval programs give
//   infer-sbp              the reference is the sequential program over all micro-batches; a sum
//                          over ranks in the middle of backward has another order
#pragma once

#include <string>
#include <string_view>

#include "framework/ir/graph.h"

namespace zg::testing {

struct PassCheckOptions {
  unsigned seed = 1;
  // Values that nobody reads must stay, and must not change: in fragments they are the results. A
  // fragment may leave out assignments, so that it matters what its updates overwrite.
  bool is_fragment = false;
  // The first graph is from before eval-weights, whose own result could not run: eval sections
  // are not compared.
  bool has_other_evals = false;
};

// The differences; empty if there are none. `pass` is the pass with its options, as in
// PassRegistry's texts.
std::string CheckPass(std::string_view pass, const ir::Graph& before, const ir::Graph& after,
                      const PassCheckOptions& options = {});

}  // namespace zg::testing
