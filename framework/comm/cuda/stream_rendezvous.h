// StreamRendezvous: synchronises the queues of ranks on GPUs, as Rendezvous (rendezvous.h) does for
// CPU threads. A rank's queue writes the word of its call into the blocks of the others and waits
// until their words are in its own block. No thread of the host or the GPU is busy meanwhile, and
// the operations can be recorded.
//
//   ZG_RETURN_IF_ERROR(rendezvous.Enter(group, call));  // queued: peers' inputs are ready
//   ... queue reads from the peers' arenas ...
//   return rendezvous.Leave();                          // queued: peers have read mine
//
// Why the same words can be replayed: a flag is 0, or the word of the call that its writer has
// reached. A rank that has seen a flag resets it to 0 before its queue goes on. Between two writes
// of rank B to the same flag of rank A, B's queue passes another synchronisation of the two at
// another flag (a collective enters and leaves). For that it needs a write of A's that comes after
// A has reset the first flag. So no word is overwritten before it was seen, none is lost by a
// reset, and there are no counters: the state is the same before and after every collective.
//
// Queues wait for equality with this rank's own word, so ranks that call different collectives do
// not get past each other. The host polls now and then while it waits, and reports who calls what.
// All data is read by the rank that needs it and written only by its owner, so the flags are the
// only writes between GPUs. Each write is ordered after everything its queue has done before (the
// default of cuStreamWriteValue32).
//
// If a rank does not arrive, the host of a waiting rank releases its own queue at the deadline. It
// tells the other ranks that it has failed before it writes the missing flags. Anything they
// compute with its data from then on becomes an error before anybody sees it.
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
  // `blocks` are the mapped blocks of all ranks of the job. The device must outlive this.
  static StatusOr<std::unique_ptr<StreamRendezvous>> Create(Device* device, int rank,
                                                            std::vector<PeerBlock*> blocks,
                                                            double timeout_s);
  ~StreamRendezvous();

  // Adds a group of the job's ranks that synchronise; returns the number that identifies it.
  int AddGroup(std::vector<int> ranks);

  // Queued, within one call: all ranks of the group have reached this point. A group of one rank
  // does not wait. Error: the job has failed.
  Status Enter(int group, const CollectiveCall& call);
  Status MeetAgain() { return Meet(Meeting::kMiddle); }
  Status Leave() { return Meet(Meeting::kLeave); }

  // Waits on the host. Errors: of the queue; a rank calls another collective, does not arrive
  // before the deadline, or has failed. After an error the job's collectives must not be used any
  // more.
  Status WaitFor(DeviceEvent& event);
  Status Synchronize();

  bool has_failed() const { return !failure_.ok(); }

 private:
  struct Call {
    CallRecord record;
    uint32_t word = 0;  // from the record's hash, never 0
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
  // False if the queue has moved meanwhile, so that flags and position do not belong together.
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
  cudaStream_t side_ = nullptr;  // the host's access to the blocks, past the queue

  std::vector<std::vector<int>> groups_;
  std::vector<Call> calls_;
  std::map<std::pair<uint64_t, int>, int> numbers_;  // of calls, by hash and group
  int current_ = -1;                                 // the call being queued
  std::vector<CUstreamBatchMemOpParams> operations_;

  std::unique_ptr<DeviceEvent> end_;
  DeviceBytes pinned_;  // a Look, the position before it, and the word at the end of a step
  Status failure_;
};

}  // namespace zg
