// Broadcasting as NumPy has it: shapes are aligned at their last dims, and a dim of size 1, or one
// that a shape does not have, is repeated.
#pragma once

#include <optional>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ir/op_def.h"
#include "framework/tensor/shape.h"

namespace zg {

// Nothing when the shapes do not fit.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// The placements of an op on operands that are broadcast to `result`: S(dim) of the result for each
// of its dims, with the operands that have it split there, and the others whole.
std::vector<ir::SbpSignature> SplitAnyDimOf(const Shape& result, const ir::OpCall& call);

// kInPlace: a result of this type may take the memory of any operand of its type.
std::vector<ir::AliasRule> InPlaceOfFullSize(const TensorType& result, const ir::OpCall& call);

// The gradient of an operand of type `type`, from `gradient`, which has the shape that the operand
// was broadcast to: sums over the dims that were repeated.
ir::Value* SumToType(ir::Builder& builder, ir::Value* gradient, const TensorType& type);

}  // namespace zg
