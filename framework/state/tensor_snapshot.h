// TensorSnapshot: the tensors of a running graph on the host, each rank with its own part, for
// transfer to another graph of the same model: with another stage or number of buckets, or with
// other frozen parameters.
//
//   ZG_ASSIGN_OR_RETURN(const TensorSnapshot snapshot, TensorSnapshot::Take(*before));
//   before.reset();                                       // its arena is free for the next one
//   ZG_RETURN_IF_ERROR(snapshot.Restore(*after, [](std::string_view) { return true; }));
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/executor.h"

namespace zg {

class TensorSnapshot {
 public:
  // Copies the elements that this rank holds; for tensors that are whole on every rank, the whole.
  static StatusOr<TensorSnapshot> Take(const Executor& executor);

  // Copies the values of the tensors that both have, one chunk at a time. Tensors that the graph
  // lacks are left out, and those that the snapshot lacks keep their values. `wanted` selects
  // tensors by name, the same on all ranks. Every rank must call this.
  Status Restore(Executor& executor,
                 const std::function<bool(std::string_view name)>& wanted) const;

 private:
  struct Part {
    std::string name;
    int64_t num_elements = 0;          // in the tensor
    std::vector<float> values;         // this rank's values
    std::vector<LocalElements> given;  // contributed by each rank; empty: all hold the whole
  };

  Status RestoreSplit(Executor& executor, const Part& part) const;

  std::vector<Part> parts_;  // ordered by name, the same tensors on all ranks
};

}  // namespace zg
