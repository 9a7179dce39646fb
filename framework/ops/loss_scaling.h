// Dynamic loss scaling (Micikevicius et al., arXiv 1710.03740, section 3.2), which keeps f16
// gradients out of the denormal range: the loss counts 2^k times in backward, the gradients 2^-k
// times in the update; k falls after a step with an infinite gradient, which changes nothing else,
// and rises after many steps without one.
//
// Its state is f32[4], zeros at first: {k - initial_exponent, steps since k changed, updates done,
// steps left out in a row}.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterLossScalingOps(ir::OpRegistry& registry);

}  // namespace zg
