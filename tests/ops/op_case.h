// The input of the op suite (op_suite.h): each family of ops has a file with cases, a plain
// double-precision reference for each of its ops, and inputs that its shape rules must reject.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/ir/attribute.h"
#include "framework/ir/op_def.h"
#include "framework/kernels/kernel.h"

namespace zg::testing {

// A random input: uniform in [low, high), integers for i64 and bool.
struct InputSpec {
  TensorType type;
  double low = -1.0;
  double high = 1.0;
};

inline InputSpec F32(Shape shape, double low = -1.0, double high = 1.0) {
  return {{DType::kF32, std::move(shape)}, low, high};
}
inline InputSpec I64(Shape shape, int64_t end) {
  return {{DType::kI64, std::move(shape)}, 0.0, static_cast<double>(end)};
}

inline InputSpec Bool(Shape shape) { return {{DType::kBool, std::move(shape)}, 0.0, 2.0}; }

struct ReferenceTensor {
  Shape shape;
  std::vector<double> values;
};

// Attributes are complete: a case may leave out those that have a default.
struct ReferenceCall {
  std::vector<ReferenceTensor> inputs;
  ir::Attributes attributes;
  StepContext step;
};

// The values of each output.
using ReferenceOutputs = std::vector<std::vector<double>>;

// Every placement that an op declares for one of its cases must be possible on 2 and on 3 ranks in
// some case: for each number of dims there is a case whose split dims are divisible by 6.
struct OpCase {
  std::string op = {};
  std::string label = {};
  std::vector<InputSpec> inputs = {};
  ir::Attributes attributes = {};
  std::function<ReferenceOutputs(const ReferenceCall&)> reference = nullptr;
  // Replaces inputs that are functions of others, such as a forward result given to a *_grad op.
  std::function<void(ReferenceCall&)> prepare = nullptr;
  double tolerance = 1e-5;               // of results, relative to the largest (at least 1)
  double gradient_tolerance = 1e-3;      // likewise, for finite differences
  bool check_gradient = true;            // false for cases with many elements
  bool exact_splits = true;              // parts have the bits of the whole where no sum is cut
  bool parts_are_micro_batches = false;  // rank r computes micro-batch r: its part depends on r
  bool is_f32_only = false;              // the op refuses 16 bits
  // For runs in 16 bits: floating-point inputs that stay f32, such as statistics and states; and
  // whether a kernel also rounds intermediate results that it passes on.
  std::vector<int> f32_inputs = {};
  bool rounds_within = false;
  // In 16 bits it rounds terms of sums.
  bool rounds_terms = false;
  // In bf16 some processors add products in another order than f32 kernels do.
  bool sums_products = false;
};

// Input types and attributes that the op rejects, and its message.
struct Rejection {
  std::string op;
  std::vector<InputSpec> inputs;
  ir::Attributes attributes;
  std::string message;
};

struct FamilyCases {
  std::vector<OpCase> cases;
  std::vector<Rejection> rejections;
  // Without references: sizes beyond one block, one chunk or one tile of a kernel. They compare a
  // GPU with the CPU, and kernels must not allocate.
  std::vector<OpCase> large = {};
  // The cases of kernel_bench: sizes of the demo models. Without references.
  std::vector<OpCase> bench = {};
  // Ops on integers, or on single operations in the same order on every device: a GPU gives the
  // bits of the CPU.
  std::vector<std::string> exact_on_gpu = {};
};

// A case for one of the lists without references.
inline OpCase Sized(std::string op, std::string label, std::vector<InputSpec> inputs,
                    ir::Attributes attributes = {}, std::vector<int> f32_inputs = {}) {
  OpCase sized;
  sized.op = std::move(op);
  sized.label = std::move(label);
  sized.inputs = std::move(inputs);
  sized.attributes = std::move(attributes);
  sized.f32_inputs = std::move(f32_inputs);
  return sized;
}

// Helpers for references.
inline int64_t Columns(const ReferenceTensor& tensor) { return tensor.shape.dim(-1); }
inline int64_t RowsOf(const ReferenceTensor& tensor) {
  return static_cast<int64_t>(tensor.values.size()) / Columns(tensor);
}
// For calls that may add their last input to output 0 (framework/ops/addend.h).
inline bool Adds(const ReferenceCall& call) {
  return call.attributes.Has("adds") && call.attributes.Bool("adds");
}
inline void AddLastInput(const ReferenceCall& call, std::vector<double>* result) {
  if (!Adds(call)) return;
  for (size_t i = 0; i < result->size(); ++i) (*result)[i] += call.inputs.back().values[i];
}
// The case with such an addend; in 16 bits the result is rounded before the addition.
inline OpCase WithAddend(OpCase op_case, const Shape& result) {
  op_case.label += ", with an addend";
  op_case.inputs.push_back(F32(result));
  op_case.attributes.Set("adds", true);
  op_case.rounds_within = true;
  return op_case;
}
// For calls with some of the equal parts of a dim (kernels/parted_dim.h): sets operand `input` to
// their indices, from `first` on.
inline void NumberParts(ReferenceCall& call, size_t input, int64_t first = 0) {
  for (double& number : call.inputs[input].values) number = static_cast<double>(first++);
}
// The position of an index in the call, which has `size` of the dim; -1: it is not there.
inline int64_t FindInParts(const ReferenceCall& call, size_t input, int64_t size, int64_t index) {
  if (call.inputs.size() <= input) return index;
  const std::vector<double>& numbers = call.inputs[input].values;
  const int64_t part_size = size / static_cast<int64_t>(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t first = static_cast<int64_t>(numbers[i]) * part_size;
    if (first <= index && index < first + part_size) {
      return static_cast<int64_t>(i) * part_size + index - first;
    }
  }
  return -1;
}
// f of the elements at each position of the first and the last input, which may be the same input.
template <typename F>
ReferenceOutputs MapElements(const ReferenceCall& call, const F& f) {
  std::vector<double> y;
  for (size_t i = 0; i < call.inputs[0].values.size(); ++i) {
    y.push_back(f(call.inputs[0].values[i], call.inputs.back().values[i]));
  }
  return {y};
}

}  // namespace zg::testing
