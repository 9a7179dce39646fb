// The optimizers' update rules, as PyTorch defines them: one node updates one parameter p (or one
// shard of a bucket) and its state in place. The learning rate is `lr` times the schedule's factor
// for the step.
#pragma once

namespace zg {

class OpRegistry;

void RegisterOptimizerOps(OpRegistry& registry);

}  // namespace zg
