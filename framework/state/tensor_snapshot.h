// TensorSnapshot: the tensors of a running graph on the host, a rank's part on each rank, to be
// given to another graph of the same model: of another stage or number of buckets, with other
// parameters frozen.
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
  // Copies what this rank holds: of tensors that are whole on every rank, the whole.
  static StatusOr<TensorSnapshot> Take(const Executor& executor);

  // Gives the tensors that both have their values, a chunk at a time; those that the graph lacks
  // are left out, and those that the snapshot lacks stay as they are. `wanted` says which, by name,
  // the same on all ranks. Every rank must call this.
  Status Restore(Executor& executor,
                 const std::function<bool(std::string_view name)>& wanted) const;

 private:
  struct Part {
    std::string name;
    int64_t num_elements = 0;          // of the tensor
    std::vector<float> values;         // this rank's
    std::vector<LocalElements> given;  // by each rank; none: all hold the whole
  };

  Status RestoreSplit(Executor& executor, const Part& part) const;

  std::vector<Part> parts_;  // by name, the same tensors on all ranks
};

}  // namespace zg
