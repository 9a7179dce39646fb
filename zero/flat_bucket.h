// Flat buckets, as bucketing and bucket-frozen make them: a variable in which tensors lie end to end,
// and the views through which the model reads them.
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

// The variables of parameters that no update changes, in their order: frozen ones, those that the loss
// does not depend on, and all of a graph that does not train.
std::vector<ir::Value*> FrozenVariables(const ir::Graph& graph);

// Whether tensors have moved into the variable: one that holds a single tensor has its name.
bool IsBucket(const ir::Graph& graph, const ir::Value& variable);

// The mesh axis along which place-parameters has split the variable; -1: none.
int SplitAxisOf(const ir::Value& variable);

// How many parts it is split into.
int64_t NumPartsOf(const ir::Graph& graph, const ir::Value& variable);

struct FlatLayout {
  std::vector<int64_t> offsets;  // of the tensors, in elements
  int64_t elements = 0;
  int64_t stage = 3;    // of ZeRO
  int split_axis = -1;  // a mesh axis of several parts, each of `elements`: (parts, elements)
};

// The variable of this name in whose places the tensors of `variables` lie from now on; the variables
// are still there.
StatusOr<ir::Value*> MakeFlatVariable(ir::Graph& graph, const std::string& name,
                                      const std::vector<ir::Value*>& variables,
                                      const FlatLayout& layout);

// Where the tensor of `variable`, which place-parameters may have split, lies in a bucket from
// element `offset` on, as attributes of bucket_view.
ir::Attributes PlaceInBucket(const ir::Value& variable, int64_t offset);

// The readers, which are of one section and in execution order, read a view of `bucket` in place of `old`: right before the first of them, of the name `name`.
Status ReadThroughView(ir::Graph& graph, const std::vector<ir::Node*>& readers, ir::Value* old,
                       ir::Value* bucket, const ir::Attributes& place, const std::string& name);

}  // namespace zg::zero
