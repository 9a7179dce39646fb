// SaveCheckpoint: writes the logical tensors of a running graph as a checkpoint. Every rank writes
// the slices that it holds, straight out of its arena, at the same time as the others; what is
// whole on every rank is written by one. The files are the same bytes for every stage, number of
// ranks and bucket size.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "framework/base/status.h"
#include "framework/io/checkpoint_store.h"
#include "framework/io/train_state.h"
#include "framework/runtime/executor.h"

namespace zg {

struct SaveOptions {
  uint64_t max_shard_bytes = uint64_t{2} << 30;  // of a file, unless one tensor is larger
  int keep = 0;                                  // checkpoints to keep, this one included; 0: all
  // Called on every rank when it gets to a point of the save: "created", "written", "hashed",
  // "described", "published". For tests that break off there.
  std::function<void(std::string_view point)> at_point = nullptr;
};

// Every rank must call this, between steps; `store` is that of rank 0 and null elsewhere. An error
// on one rank is an error on all; the checkpoints that were there before are then untouched.
Status SaveCheckpoint(Executor& executor, CheckpointStore* store, const TrainState& state,
                      const SaveOptions& options);

}  // namespace zg
