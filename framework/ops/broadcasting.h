// Broadcasting as in NumPy: shapes are aligned at their last dims, and a dim that is missing or of
// size 1 is repeated.
#pragma once

#include <optional>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ir/op_def.h"
#include "framework/tensor/shape.h"

namespace zg {

// Nothing if the shapes do not match.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// The shape of a call's one or two operands, broadcast; the first one's if they do not match.
Shape ResultShape(const ir::OpCall& call);

// The placements of an op on operands that are broadcast to `result`: S(dim) of the result for each
// of its dims. Operands that have the dim are split there, and the others are whole.
std::vector<ir::SbpSignature> SplitAnyDimOf(const Shape& result, const ir::OpCall& call);

// kInPlace: a result of this type may reuse the memory of any operand of the same type.
std::vector<ir::AliasRule> InPlaceOfFullSize(const TensorType& result, const ir::OpCall& call);

// The gradient of an operand of type `type`, from `gradient`, which has the shape that the operand
// was broadcast to: sums over the dims that were repeated.
ir::Value* SumToType(ir::Builder& builder, ir::Value* gradient, const TensorType& type);

}  // namespace zg
