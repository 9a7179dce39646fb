// StreamRendezvous: where the queues of ranks on GPUs meet, as threads of the CPU do at a Rendezvous
// (rendezvous.h). A rank's queue writes the word of its call into the blocks of the others and waits
// until theirs are in its own; no thread of host or GPU is busy with that, and it can be recorded.
//
//   ZG_RETURN_IF_ERROR(rendezvous.Enter(group, call));  // queued: peers' inputs are ready
//   ... queue reads from the peers' arenas ...
//   return rendezvous.Leave();                          // queued: peers have read mine
//
// Why the same words can be replayed. A flag is 0, or the word that says which call its writer has
// come to. Who has seen a flag sets it back to 0 before its queue goes on. Between two writes of rank
// B to the same flag of rank A, B's queue passes another meeting of the two, at another flag (a
// collective enters and leaves), for which it needs a write of A's that comes after A set the first
// flag back. So no word is overwritten before it was seen, none is lost by being set back, and
// nothing counts: the state is the same before and after every collective.
//
// Waits are for equality with this rank's own word, so ranks that call different things do not get
// past each other; the host, which looks now and then while it waits, says who calls what. All data
// is read by who needs it and written by its owner alone, so the flags are the only writes between
// GPUs, and each is ordered behind what its queue has done before (the default of
// cuStreamWriteValue32).
//
// A queue that waits for a rank that does not come is released by its own host at the deadline, which
// tells the other ranks that it has failed before it writes the missing flags; what they compute with
// its data from there on is an error before anybody sees it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/collective_call.h"
#include "framework/comm/cuda/peer_block.h"
#include "framework/device/device.h"

namespace zg {

class StreamRendezvous {
 public:
  // `blocks` are those of all ranks of the job, mapped. The device outlives this.
  static StatusOr<std::unique_ptr<StreamRendezvous>> Create(Device* device, int rank,
                                                            std::vector<PeerBlock*> blocks,
                                                            double timeout_s);
  ~StreamRendezvous();

  // Ranks of the job that meet; the number to name them by.
  int AddGroup(std::vector<int> ranks);

  // Queue, within one call: all ranks of the group are at this point. A group of one rank does not
  // wait. Error: the job has failed.
  Status Enter(int group, const CollectiveCall& call);
  Status MeetAgain() { return Meet(Meeting::kMiddle); }
  Status Leave() { return Meet(Meeting::kLeave); }

  // Wait, on the host. Errors: of the queue; a rank calls something else, does not come before the
  // deadline, or has failed. After an error the job's collectives are of no further use.
  Status WaitFor(DeviceEvent& event);
  Status Synchronize();

  bool has_failed() const { return !failure_.ok(); }

 private:
  struct Call {
    CallRecord record;
    uint32_t word = 0;  // of the record's hash, never 0
    int group = 0;
  };
  // A block without its calls.
  struct Look {
    uint32_t flags[kNumMeetings][PeerBlock::kMaxRanks];
    uint32_t failed_rank_plus_1;
    uint32_t position;
  };

  StreamRendezvous(Device* device, int rank, std::vector<PeerBlock*> blocks, double timeout_s);

  int num_ranks() const { return static_cast<int>(blocks_.size()); }
  PeerBlock* own() const { return blocks_[rank_]; }
  StatusOr<int> NumberOf(int group, const CollectiveCall& call);
  Status Meet(Meeting meeting);

  void Write(uint32_t* to, uint32_t value);
  void WaitUntil(uint32_t* flag, uint32_t value);
  Status Submit(cudaStream_t stream);

  Status Read(const void* from, int64_t bytes, void* to);
  // False where the queue has moved meanwhile, so that flags and position do not belong together.
  StatusOr<bool> LookAt(int rank, Look* look);
  StatusOr<CallRecord> CallOf(int rank, int number);

  Status ProblemIn(const Look& look, bool is_stuck);
  Status Mismatch(const Call& call, int other_rank, uint32_t word);
  Status OtherRankFailed(int other_rank, const Look& look) const;
  Status DeadlinePassed(const Look& look);
  Status Fail(Status status);
  void Release();

  Device& device_;
  const int rank_;
  const std::vector<PeerBlock*> blocks_;  // by rank in the job
  const double timeout_s_;
  cudaStream_t side_ = nullptr;  // the host's own way to the blocks, past the queue

  std::vector<std::vector<int>> groups_;
  std::vector<Call> calls_;
  std::map<std::pair<uint64_t, int>, int> numbers_;  // of calls, by hash and group
  int current_ = -1;                                 // the call that is being queued
  std::vector<CUstreamBatchMemOpParams> operations_;

  std::unique_ptr<DeviceEvent> end_;
  DeviceBytes pinned_;  // a Look, the position before it, and the word that a step ends with
  Status failure_;
};

}  // namespace zg
