#include "framework/comm/mpi_calls.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTagStrings = 64;  // no other message has this tag

void SleepSeconds(double seconds) {
  timespec time{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&time, nullptr);
}

int RankIn(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int SizeOf(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

}  // namespace

Status MpiStatus(int code, std::string_view function) {
  if (code == MPI_SUCCESS) return Status::Ok();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  function = function.substr(0, function.find('('));
  return Aborted("{} failed: {}", function, std::string_view(text, length));
}

MpiComm::MpiComm(MpiComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}

MpiComm& MpiComm::operator=(MpiComm&& other) noexcept {
  std::swap(comm_, other.comm_);
  return *this;
}

MpiComm::~MpiComm() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (comm_ != MPI_COMM_NULL && is_finalized == 0) MPI_Comm_free(&comm_);
}

StatusOr<MpiComm> MpiComm::Duplicate(MPI_Comm from) {
  MpiComm comm;
  ZG_RETURN_IF_MPI_ERROR(MPI_Comm_dup(from, &comm.comm_));
  ZG_RETURN_IF_MPI_ERROR(MPI_Comm_set_errhandler(comm.comm_, MPI_ERRORS_RETURN));
  return comm;
}

StatusOr<MpiComm> MpiComm::Split(MPI_Comm from, int color, int key) {
  MpiComm comm;
  ZG_RETURN_IF_MPI_ERROR(MPI_Comm_split(from, color, key, &comm.comm_));
  ZG_RETURN_IF_MPI_ERROR(MPI_Comm_set_errhandler(comm.comm_, MPI_ERRORS_RETURN));
  return comm;
}

StatusOr<MpiComm> MpiComm::OfThisHost(MPI_Comm from) {
  MpiComm comm;
  ZG_RETURN_IF_MPI_ERROR(
      MPI_Comm_split_type(from, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm.comm_));
  ZG_RETURN_IF_MPI_ERROR(MPI_Comm_set_errhandler(comm.comm_, MPI_ERRORS_RETURN));
  return comm;
}

int MpiComm::rank() const { return RankIn(comm_); }

int MpiComm::size() const { return SizeOf(comm_); }

MPI_Request* MpiRequests::Add(int peer) {
  peers_.push_back(peer);
  requests_.push_back(MPI_REQUEST_NULL);
  return &requests_.back();
}

Status MpiRequests::Send(MPI_Comm comm, const void* data, int64_t bytes, int peer, int tag) {
  return MpiStatus(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm, Add(peer)),
                   "MPI_Isend");
}

Status MpiRequests::Receive(MPI_Comm comm, void* data, int64_t bytes, int peer, int tag) {
  return MpiStatus(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm, Add(peer)),
                   "MPI_Irecv");
}

void MpiRequests::Clear() {
  requests_.clear();
  peers_.clear();
}

Status MpiRequests::Wait(const std::vector<int>& ranks, double timeout_s, SleepPace* pace) {
  // Waits first at full speed, then yields the core after each poll, then sleeps between polls. At a
  // pace, it does not yield, which could take as long as another thread may compute.
  constexpr int kPollsBeforeYield = 50;
  constexpr double kYieldSeconds = 2e-3;
  constexpr double kSleepSeconds = 50e-6;
  if (requests_.empty()) return Status::Ok();
  Clock::time_point start;
  int num_sleeps = 0;
  for (int polls = 0;; ++polls) {
    int all_complete = 0;
    const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(),
                                 &all_complete, MPI_STATUSES_IGNORE);
    ZG_RETURN_IF_ERROR(MpiStatus(code, "MPI_Testall"));
    if (all_complete != 0) break;
    if (polls == 0) start = Clock::now();
    if (polls < kPollsBeforeYield) continue;
    const double waited_s = std::chrono::duration<double>(Clock::now() - start).count();
    if (waited_s >= timeout_s) {
      return GiveUp(ranks, timeout_s);
    }
    if (pace != nullptr) {
      SleepSeconds(pace->SleepSeconds(num_sleeps));
      ++num_sleeps;
    } else if (waited_s < kYieldSeconds) {
      sched_yield();
    } else {
      SleepSeconds(kSleepSeconds);
    }
  }
  if (pace != nullptr) pace->EndWait(num_sleeps);
  Clear();
  return Status::Ok();
}

Status MpiRequests::GiveUp(const std::vector<int>& ranks, double timeout_s) {
  std::set<int> missing;
  for (size_t i = 0; i < requests_.size(); ++i) {
    // MPI_Testall does not tell which ones are complete.
    int is_complete = 0;
    MPI_Test(&requests_[i], &is_complete, MPI_STATUS_IGNORE);
    if (is_complete != 0) continue;
    missing.insert(ranks[peers_[i]]);
    MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  Clear();
  std::string whom = "the other ranks";
  if (!missing.empty()) {
    whom = fmt::format("rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
  }
  return DeadlineExceeded("no sign of {} within {} s (ZG_COLLECTIVE_TIMEOUT_S)", whom, timeout_s);
}

// Uses messages instead of MPI's collectives, which do not tell whom they wait for.
StatusOr<std::vector<std::string>> GatherStrings(MPI_Comm comm, const std::string& mine,
                                                 std::string_view what, double timeout_s) {
  const int num_ranks = SizeOf(comm);
  const int my_rank = RankIn(comm);
  struct Buffers {
    int64_t my_bytes = 0;
    std::vector<int64_t> bytes;
    std::string mine;
    std::vector<std::string> strings;
  };
  // Left to MPI permanently if it does not complete in time.
  auto buffers = std::make_unique<Buffers>();
  MpiRequests requests;
  std::vector<int> ranks(num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto wait = [&] {
    const Status status = requests.Wait(ranks, timeout_s);
    if (!status.ok()) static_cast<void>(buffers.release());
    return status.WithContext(what);
  };

  buffers->mine = mine;
  buffers->my_bytes = static_cast<int64_t>(mine.size());
  buffers->bytes.resize(num_ranks);
  buffers->bytes[my_rank] = buffers->my_bytes;
  for (int peer = 0; peer < num_ranks; ++peer) {
    if (peer == my_rank) continue;
    ZG_RETURN_IF_ERROR(
        requests.Receive(comm, &buffers->bytes[peer], sizeof(int64_t), peer, kTagStrings));
    ZG_RETURN_IF_ERROR(requests.Send(comm, &buffers->my_bytes, sizeof(int64_t), peer, kTagStrings));
  }
  ZG_RETURN_IF_ERROR(wait());

  const int64_t total = std::accumulate(buffers->bytes.begin(), buffers->bytes.end(), int64_t{0});
  if (total > INT_MAX) return InvalidArgument("{}: {} bytes in all are too many", what, total);
  buffers->strings.resize(num_ranks);
  for (int peer = 0; peer < num_ranks; ++peer) {
    std::string& theirs = buffers->strings[peer];
    if (peer == my_rank) {
      theirs = mine;
      continue;
    }
    theirs.resize(buffers->bytes[peer]);
    ZG_RETURN_IF_ERROR(
        requests.Receive(comm, theirs.data(), buffers->bytes[peer], peer, kTagStrings));
    ZG_RETURN_IF_ERROR(
        requests.Send(comm, buffers->mine.data(), buffers->my_bytes, peer, kTagStrings));
  }
  ZG_RETURN_IF_ERROR(wait());
  return std::move(buffers->strings);
}

Status GatherStatus(MPI_Comm comm, const Status& mine, std::string_view what, double timeout_s) {
  const auto messages = GatherStrings(comm, mine.ok() ? "" : mine.ToString(), what, timeout_s);
  if (!mine.ok()) return mine;
  ZG_RETURN_IF_ERROR(messages.status());
  for (size_t rank = 0; rank < messages->size(); ++rank) {
    const std::string& message = (*messages)[rank];
    if (!message.empty()) return Aborted("{}: rank {} failed: {}", what, rank, message);
  }
  return Status::Ok();
}

void PrintAndAbort(const Status& status, int rank, bool was_first) {
  if (status.code() == StatusCode::kAborted) {
    const timespec time{was_first ? 1 : 2, 0};
    nanosleep(&time, nullptr);
  }
  const std::string text = fmt::format("rank {}: {}\n", rank, status.ToString());
  // One write, so that the lines of several ranks do not mix.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  MPI_Abort(MPI_COMM_WORLD, status.code() == StatusCode::kInvalidArgument ? 2 : 1);  // as Job
  std::abort();
}

}  // namespace zg
