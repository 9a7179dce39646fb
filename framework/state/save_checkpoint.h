// CheckpointSave: writes the logical tensors of a running graph as a checkpoint. Every rank writes
// the slices that it holds, at the same time as the others. The files are the same bytes for every
// stage, number of ranks and bucket size, and for both ways of saving: straight out of the arena,
// or from a copy of the slices while training goes on.
//
//   CheckpointSave save(executor, store, state, options);
//   ZG_RETURN_IF_ERROR(save.Run());            // or, with memory for a copy:
//   ZG_RETURN_IF_ERROR(save.Start(memory));
//   ... a step ...
//   ZG_ASSIGN_OR_RETURN(const bool is_saved, save.Continue());
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/checkpoint_checksums.h"
#include "framework/io/checkpoint_store.h"
#include "framework/io/shard_layout.h"
#include "framework/io/train_state.h"
#include "framework/runtime/executor.h"
#include "framework/state/checkpoint_slices.h"

namespace zg {

struct SaveOptions {
  uint64_t max_shard_bytes = uint64_t{2} << 30;  // of a file, unless one tensor is larger
  int keep = 0;                                  // checkpoints to keep, this one included; 0: all
  // Called on every rank when all ranks have come to a point of the save: "created", "written",
  // "hashed", "described", "published". For tests that break off there.
  std::function<void(std::string_view point)> at_point = nullptr;
};

// Every rank makes one and calls the same methods in the same order, between steps. An error on one
// rank is an error on all, and ends the save; the checkpoints that were there before are then
// untouched. Only the calling thread talks to other ranks.
class CheckpointSave {
 public:
  // `store` is that of rank 0 and null elsewhere; it and the executor outlive the save.
  CheckpointSave(Executor& executor, CheckpointStore* store, TrainState state, SaveOptions options);
  CheckpointSave(const CheckpointSave&) = delete;
  // Waits for the thread; what is not published by then never will be.
  ~CheckpointSave();

  int64_t step() const { return state_.step; }

  // All of it, in this thread, without a copy.
  Status Run();

  // Copies this rank's slices into `memory`, which has CheckpointBytesOf(graph, rank) bytes and
  // must stay as it is until the save has ended. A thread then writes them.
  Status Start(std::byte* memory);
  // Whether the save that was started is whole on the disk. Does not wait: when every rank's thread
  // has done its part of a phase, the next phase begins.
  StatusOr<bool> Continue();
  // Continues until it is.
  Status Finish();

 private:
  // What the ranks do between two points, each for itself; then they meet.
  struct Phase {
    const char* point;
    Status (CheckpointSave::*work)();  // in the thread, if there is one
    void (CheckpointSave::*take)(const std::vector<std::string>& results);  // by rank; may be null
  };
  static const Phase kPhases[];
  static const size_t kNumPhases;

  struct Part {
    const char* name = nullptr;
    std::vector<const ir::StoredTensor*> tensors;
    ShardLayout layout;
    std::vector<CheckpointSlice> slices;  // this rank's
  };

  bool is_main() const { return store_ != nullptr; }
  bool has_ended() const { return phase_ == kNumPhases; }
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  Status LayOut();
  Status CopySlices(std::byte* target);
  void StartPhase();
  // Tells the others that this rank is done with the phase, and how, or that it is not yet; true
  // when all were done.
  StatusOr<bool> Meet(bool is_done, const Status& status);
  Status End(const Status& status);

  Status CreateFiles();
  void TakeDirectory(const std::vector<std::string>& directories);
  Status WriteSlices();
  Status HashFiles();
  void TakeChecksums(const std::vector<std::string>& lines);
  Status WriteDescribed(const std::string& name, const std::string& text);
  Status Describe();
  Status Publish();

  Executor& executor_;
  Communicator& communicator_;
  CheckpointStore* const store_;
  const TrainState state_;
  const SaveOptions options_;
  const std::byte* copy_ = nullptr;  // of the slices, one after another; null: read the arena
  std::vector<Part> parts_;
  std::vector<const ShardFile*> files_;  // of all parts
  std::string directory_;                // temporary

  size_t phase_ = 0;          // in kPhases
  std::future<Status> work_;  // of the phase, in its thread
  std::string result_;        // of the phase's work, for the other ranks
  Checksums checksums_;
};

}  // namespace zg
