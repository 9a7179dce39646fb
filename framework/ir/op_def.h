// OpDef: the whole definition of one operation, except its kernels: shape rule, placements,
// gradient, aliases, flops, traits. One value of this type per op, defined in
// framework/ops/<family>.cc and registered by name (op_registry.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/attribute.h"
#include "framework/ir/op_traits.h"
#include "framework/ir/sbp.h"
#include "framework/tensor/tensor_type.h"

namespace zg::ir {

class Builder;
class GradientContext;
class PartsContext;
struct OpDef;
struct Value;

// One application of an op to inputs of given types; shape rules, placements and flops are
// functions of it. The types are logical ones at build time and local ones when a rank's kernel is
// made.
struct OpCall {
  const OpDef* op = nullptr;
  std::vector<TensorType> inputs;
  Attributes attributes;
};

// A legal combination of placements of inputs and outputs along one mesh axis. All-broadcast is
// always legal for a pure op and need not be listed.
struct SbpSignature {
  std::vector<Sbp> inputs;
  std::vector<Sbp> outputs;
  int64_t units = 0;  // which the ranks share evenly, such as heads; 0: the elements of split dims
};

// Two operands of a node that share memory.
struct AliasRule {
  enum class Kind {
    kOutputInsideInput,  // must: the output is the part of the input that begins at offset_elements
                         // (views, updates)
    kInputInsideOutput,  // wanted: the input is produced directly at offset_elements of the output
                         // (packing)
    kInPlace,  // may: the output reuses the input's memory when nobody reads the input afterwards
  };
  Kind kind = Kind::kInPlace;
  int input = 0;
  int output = 0;
  int64_t offset_elements = 0;
  bool at_rank_slice = false;  // plus rank * (elements of the smaller operand): the rank's own part
};

// Adds up the gradients of a value that is the same input of several nodes of an op, where that takes
// less time than to compute each of them and to add those.
struct GradientSum {
  int input = -1;  // -1: they are added one by one
  // Whether the gradient of the input of such a node can wait for those of the others.
  std::function<bool(const OpCall&)> waits;
  // Appends nodes; returns the values that remain to be added. The gradients are those that the op's
  // rule has made for these nodes.
  std::function<std::vector<Value*>(Builder&, const std::vector<Value*>& gradients)> add;
};

struct OpDef {
  std::string name;
  std::string doc;  // one or two sentences with the formula
  int min_inputs = 1;
  int max_inputs = 1;  // -1: unlimited
  int num_outputs = 1;
  std::vector<AttributeDef> attributes;
  OpTraits traits;

  // Output types, or an error that names the shapes. The number of inputs and the attributes'
  // presence and types are already checked.
  std::function<StatusOr<std::vector<TensorType>>(const OpCall&)> infer_shape;
  // Legal placements along one mesh axis of `num_ranks` ranks, best first. Null: all-broadcast
  // only.
  std::function<std::vector<SbpSignature>(const OpCall&)> sbp_signatures;
  // Appends the nodes that compute the gradients of the inputs. Null: see not_differentiable.
  std::function<Status(GradientContext&)> gradient;
  GradientSum gradient_sum;
  std::string not_differentiable;  // the reason, for an op without gradient
  std::function<std::vector<AliasRule>(const OpCall&)> aliases;
  // Sets the attributes of a rank's call (with local types) that count the elements of a split dim;
  // null: there are none.
  std::function<void(const OpCall& logical, OpCall* local)> localize;
  // For an axis whose ranks share micro-batches and that splits an operand as no signature accepts,
  // such as the classes of logits: appends nodes that compute the same result from the parts
  // (ir/parts_context.h), or leaves the node unchanged. Null: the op cannot do that.
  std::function<Status(PartsContext&)> in_parts;
  // Floating-point operations of one execution; null: 0.
  std::function<int64_t(const OpCall&)> flops;
  // Bytes that one rank sends in one execution along a mesh axis of `num_ranks` ranks, for the
  // logical types of the call. Null: 0.
  std::function<int64_t(const OpCall&, int num_ranks)> sent_bytes;
};

}  // namespace zg::ir
