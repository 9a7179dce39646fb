// Helpers of op definitions: checks with the usual messages, shape arithmetic, and the placements
// and aliases of elementwise ops.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/builder.h"
#include "framework/ir/op_def.h"

namespace zg {

// The reason that every *_grad op gives for having no gradient.
inline constexpr char kNoSecondDerivative[] = "second derivatives are not supported";

// The names of an op's inputs in messages, in order.
using InputNames = std::vector<std::string_view>;

// `linear: inner dims differ: x f32[8,16], weight f32[32,64]`.
Status Rejected(const ir::OpCall& call, const InputNames& names, std::string_view problem);

// Error unless the inputs named `floats` (all of them by default) have one floating-point dtype.
Status CheckOneFloatDType(const ir::OpCall& call, const InputNames& names,
                          const InputNames& floats = {});

// Error unless all inputs have one floating-point dtype and one shape.
Status CheckAllAlike(const ir::OpCall& call, const InputNames& names);

// Error unless attribute `name` (a double) is in [0, end); NaN is not.
Status CheckRange(const ir::OpCall& call, std::string_view name,
                  double end = std::numeric_limits<double>::infinity());

Shape WithLastDim(const Shape& shape, int64_t size);  // [20,2000], 5 -> [20,5]
Shape WithoutLastDim(const Shape& shape);             // [20,2000] -> [20]
int64_t Rows(const Shape& shape);                     // elements of all dims but the last

// Shape rule of ops that map inputs of one type to one output of that type.
StatusOr<std::vector<TensorType>> LikeInputs(const ir::OpCall& call, const InputNames& names);

// Every operand is split in the same place: S(i) for each dim i of the first input.
std::vector<ir::SbpSignature> SplitAnyDim(const ir::OpCall& call);
// The same but for the attribute `dim`, along which elements depend on each other.
std::vector<ir::SbpSignature> SplitOtherDims(const ir::OpCall& call);

// kInPlace: output 0 may take the memory of any one of these inputs.
std::vector<ir::AliasRule> InPlaceOf(std::initializer_list<int> inputs);

// kOutputInsideInput: output 0 is input 0's memory from `offset_elements` on.
std::vector<ir::AliasRule> InsideInput(int64_t offset_elements = 0);

// For calls that have some of the equal parts of a dim of `size` (kernels/parted_dim.h): error
// unless operand `input` is i64[n] for n of `parts` parts that divide it.
Status CheckPart(const ir::OpCall& call, const InputNames& names, size_t input, int64_t size);

// Error if the loss depends on outputs other than the first `count`: they only serve the gradient.
Status CheckOnlyFirstUsed(const ir::GradientContext& context, int count = 1);

}  // namespace zg
