// Common helpers of the MPI communicators: errors as Status, waits with a deadline, and strings
// from every rank.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/sleep_pace.h"

namespace zg {

// The error code of an MPI function as a Status; `function` is its name.
Status MpiStatus(int code, std::string_view function);

#define ZG_RETURN_IF_MPI_ERROR(call) ZG_RETURN_IF_ERROR(::zg::MpiStatus(call, #call))

// A communicator that returns its errors. It is freed with the object.
class MpiComm {
 public:
  MpiComm() = default;
  MpiComm(MpiComm&& other) noexcept;
  MpiComm& operator=(MpiComm&& other) noexcept;
  ~MpiComm();

  // Collective over `from`.
  static StatusOr<MpiComm> Duplicate(MPI_Comm from);
  // The ranks of `from` with the same color, in the order of their keys. Collective over `from`.
  static StatusOr<MpiComm> Split(MPI_Comm from, int color, int key);
  // The ranks of `from` on this host. Collective over `from`.
  static StatusOr<MpiComm> OfThisHost(MPI_Comm from);

  MPI_Comm get() const { return comm_; }
  int rank() const;
  int size() const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Requests that are waited for together, each with the rank of its peer.
class MpiRequests {
 public:
  // Begin a message; `data` must not change until Wait.
  Status Send(MPI_Comm comm, const void* data, int64_t bytes, int peer, int tag);
  Status Receive(MPI_Comm comm, void* data, int64_t bytes, int peer, int tag);
  void Clear();

  // Polls until all are complete, and clears the list. The error at the deadline names the ranks of
  // the open requests. Those requests are then abandoned, but MPI may still write to their buffers,
  // so the buffers must not be used after an error. Peer i is rank `ranks[i]` of the job. With
  // `pace`, another thread may compute.
  Status Wait(const std::vector<int>& ranks, double timeout_s, SleepPace* pace = nullptr);

 private:
  MPI_Request* Add(int peer);
  Status GiveUp(const std::vector<int>& ranks, double timeout_s);

  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;
};

// The strings of all ranks of the job, by rank. Collective.
StatusOr<std::vector<std::string>> GatherStrings(MPI_Comm comm, const std::string& mine,
                                                 std::string_view what, double timeout_s);

// This rank's error if it has one, else the first other rank's, as Aborted. Collective.
Status GatherStatus(MPI_Comm comm, const Status& mine, std::string_view what, double timeout_s);

// Prints the error on standard error in one piece, then ends all ranks. A rank that was aborted only
// knows about a failure: it first gives the rank that knows the cause the time to report that, and to
// end this one too; more time if it was not the first to notice.
[[noreturn]] void PrintAndAbort(const Status& status, int rank, bool was_first);

}  // namespace zg
