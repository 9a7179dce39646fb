// Flat buckets, made by bucketing and bucket-frozen: a variable that holds tensors end to end, and
// the views through which the model reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg::zero {

inline constexpr int64_t kBucketAlignmentBytes = 64;  // a cache line, and the widest vector

inline int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The variables of parameters that no update changes, in their order: frozen parameters, parameters
// that the loss does not depend on, and all parameters of a graph that does not train.
std::vector<ir::Value*> FrozenVariables(const ir::Graph& graph);

// Whether tensors have moved into the variable: a variable that holds a single tensor has the
// tensor's name.
bool IsBucket(const ir::Graph& graph, const ir::Value& variable);

// The mesh axis along which place-parameters has split the variable; -1: none.
int SplitAxisOf(const ir::Value& variable);

// The number of parts it is split into.
int64_t NumPartsOf(const ir::Graph& graph, const ir::Value& variable);

struct FlatLayout {
  std::vector<int64_t> offsets;  // of the tensors, in elements
  int64_t elements = 0;
  int64_t stage = 3;    // of ZeRO
  int split_axis = -1;  // a mesh axis that splits the bucket into several parts of `elements` each:
                        // (parts, elements)
};

// Makes the variable of this name, which stores the tensors of `variables` from now on; the old
// variables still exist.
StatusOr<ir::Value*> MakeFlatVariable(ir::Graph& graph, const std::string& name,
                                      const std::vector<ir::Value*>& variables,
                                      const FlatLayout& layout);

// The place of the tensor of `variable` in a bucket, from element `offset` on, as attributes of
// bucket_view. place-parameters may have split the variable.
ir::Attributes PlaceInBucket(const ir::Value& variable, int64_t offset);

// Makes the readers read a view of `bucket` instead of `old`. The view gets the name `name` and is
// inserted right before the first reader. Readers must be in one section and in execution order.
Status ReadThroughView(ir::Graph& graph, const std::vector<ir::Node*>& readers, ir::Value* old,
                       ir::Value* bucket, const ir::Attributes& place, const std::string& name);

}  // namespace zg::zero
