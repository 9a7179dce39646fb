// The optimizers' update rules, as PyTorch defines them: one node updates one parameter p (or one
// shard of a bucket) and its state in place. The learning rate is `lr` times the schedule's factor
// for the step.
//
// An optional last input, control f32[2] (op update_control), holds a factor on the gradient, which
// is applied before anything else, and the number of the update for Adam's bias correction. A
// factor of exactly 0 leaves parameter and state as they are.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterOptimizerOps(ir::OpRegistry& registry);

}  // namespace zg
