// Layer normalisation over the last dim (arXiv 1607.06450) and its gradient.
// Shapes: x, y (..., C); gamma, beta (C); mean, rstd (...) in f32: the mean and 1 / standard
// deviation of each row.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterLayerNormOps(ir::OpRegistry& registry);

}  // namespace zg
