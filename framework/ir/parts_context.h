// PartsContext: the view of an op's rule for parts: the node, how a mesh axis whose ranks share
// micro-batches splits its operands, and the slots for values that replace its outputs.
#pragma once

#include <utility>
#include <vector>

#include "framework/ir/builder.h"

namespace zg::ir {

class PartsContext {
 public:
  // `wanted`: for each output, the placement along the axis of the parameter whose gradient the
  // output becomes.
  PartsContext(const Node& node, int axis, Builder* builder, std::vector<Sbp> wanted)
      : node_(node),
        axis_(axis),
        builder_(*builder),
        wanted_(std::move(wanted)),
        outputs_(node.outputs.size(), nullptr) {}

  const Node& node() const { return node_; }
  Builder& builder() { return builder_; }
  int num_parts() const { return builder_.graph().mesh().axes()[axis_].num_parts(); }
  Sbp input_sbp(int i) const { return node_.inputs[i]->sbp[axis_]; }
  Sbp wanted(int i = 0) const { return wanted_[i]; }

  // The indices 0, 1, ... of the parts, i64[num_parts()], split so that each rank has its own: the
  // operand `part` of ops that compute with some parts of a dim (kernels/parted_dim.h).
  Value* Part();

  // The node's attributes plus `parts`, for such an op.
  Attributes WithParts() const;

  void set_output(int i, Value* value) { outputs_[i] = value; }
  const std::vector<Value*>& outputs() const { return outputs_; }

 private:
  const Node& node_;
  int axis_;
  Builder& builder_;
  std::vector<Sbp> wanted_;
  std::vector<Value*> outputs_;
};

}  // namespace zg::ir
