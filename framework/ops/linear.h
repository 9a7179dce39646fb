// Matrix products: y = x weight^T + bias and its three gradients.
// Shapes: x (..., K), weight (N, K), bias (N), y (..., N); the leading dims count as rows.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterLinearOps(ir::OpRegistry& registry);

}  // namespace zg
