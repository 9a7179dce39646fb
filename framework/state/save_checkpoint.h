// CheckpointSave: writes the logical tensors of a running graph as a checkpoint. All ranks write
// the slices that they hold at the same time. The files are the same bytes for every stage, number
// of ranks and bucket size, and for both ways of saving: straight out of the arena, or from a copy
// of the slices while training goes on.
//
//   CheckpointSave save(executor, store, state, options);
//   ZG_RETURN_IF_ERROR(save.Run());            // or, with memory for a copy:
//   ZG_RETURN_IF_ERROR(save.Start(memory));
//   ... a step ...
//   ZG_ASSIGN_OR_RETURN(const bool is_saved, save.Continue());
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/checkpoint_checksums.h"
#include "framework/io/checkpoint_store.h"
#include "framework/io/shard_layout.h"
#include "framework/io/train_state.h"
#include "framework/runtime/executor.h"
#include "framework/state/checkpoint_slices.h"
#include "framework/state/save_options.h"

namespace zg {

// Every rank must create one and call the same methods in the same order, between steps. An error
// on one rank is an error on all, and ends the save; earlier checkpoints then remain untouched.
// Only the calling thread communicates with other ranks.
class CheckpointSave {
 public:
  // `store` is set on rank 0 and null elsewhere; it and the executor must outlive the save.
  CheckpointSave(Executor& executor, CheckpointStore* store, TrainState state, SaveOptions options);
  CheckpointSave(const CheckpointSave&) = delete;
  // Waits for the thread. A save that is not published by then never will be.
  ~CheckpointSave();

  int64_t step() const { return state_.step; }

  // Saves everything in this thread, without a copy.
  Status Run();

  // Copies this rank's slices into `memory`, which has CheckpointBytesOf(graph, rank) bytes and
  // must not change until the save has ended. A thread then writes them.
  Status Start(std::byte* memory);
  // Whether the started save is complete on the disk. Does not wait: when every rank's thread has
  // done its part of a phase, the next phase begins.
  StatusOr<bool> Continue();
  // Waits until it is complete.
  Status Finish();

 private:
  // The work of the ranks between two synchronisation points.
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
  // Tells the others whether this rank is done with the phase, and its status; returns true when
  // all ranks are done.
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
  const std::byte* copy_ = nullptr;  // the slices, one after another; null: read the arena
  std::vector<Part> parts_;
  std::vector<const ShardFile*> files_;  // for all parts
  std::string directory_;                // temporary

  size_t phase_ = 0;          // index in kPhases
  std::future<Status> work_;  // of the phase, in its thread
  std::string result_;        // result of the phase's work, for the other ranks
  Checksums checksums_;
};

}  // namespace zg
