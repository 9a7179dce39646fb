// TensorValues: stored tensors of a running graph as plain values outside of its arena: whole on
// one rank, or the parts that a rank holds.
//
//   ZG_ASSIGN_OR_RETURN(NamedValues whole, ConsolidateTensors(executor, role, 0));  // every rank
//   ZG_RETURN_IF_ERROR(ScatterTensors(executor, role, whole, 0));                   // back again
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/executor.h"
#include "framework/state/tensor_state.h"
#include "framework/tensor/shape.h"

namespace zg {

struct TensorValues {
  Shape shape;                // of the whole tensor
  LocalElements elements;     // the elements that `values` are, row-major
  std::vector<float> values;  // fewer than the shape's elements if this is a part
};

TensorValues WholeTensor(const Shape& shape, std::vector<float> values);

using NamedValues = std::map<std::string, TensorValues, std::less<>>;  // by the tensor's name

// Returns every tensor of the role, whole, on rank `to`, and nothing on the other ranks, which need
// only a few megabytes at a time. The values are the same for every stage and number of ranks.
// Every rank must call this, in the same order. Error: no such rank.
StatusOr<NamedValues> ConsolidateTensors(Executor& executor, TensorRole role, int to);

// The reverse: every rank takes its parts of the whole tensors of rank `from`; those of other ranks
// are ignored. Every rank must call this, in the same order. Errors, on every rank: no such rank;
// all tensors that are missing, unknown, not whole or of another shape. Those that `may_lack` names
// may be missing: they keep their values.
Status ScatterTensors(Executor& executor, TensorRole role, const NamedValues& whole, int from,
                      const std::vector<ScopePattern>& may_lack = {});

// Copies of the parts that this rank holds, without communication.
StatusOr<NamedValues> LocalTensors(const Executor& executor, TensorRole role);

// Sets every rank's parts from whole tensors, or from parts that contain its own. Every rank must
// call this, in the same order. Errors, on every rank, after which nothing has changed: like
// ScatterTensors; elements that a rank holds and its `values` lack.
Status SetLocalTensors(Executor& executor, TensorRole role, const NamedValues& values);

}  // namespace zg
