#include "framework/state/save_memory.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace zg {
namespace {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

struct Needs {
  int64_t host_bytes = 0;  // of all ranks on this rank's host
  int64_t most_bytes = 0;  // of any rank
};

StatusOr<Needs> ExchangeNeeds(Communicator& communicator, int64_t bytes) {
  const std::string host = HostName();
  ZG_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      communicator.Exchange("memory for saving", std::to_string(bytes) + "\n" + host));
  Needs needs;
  for (const std::string& one : all) {
    const int64_t of_rank = std::stoll(one);
    if (one.substr(one.find('\n') + 1) == host) needs.host_bytes += of_rank;
    needs.most_bytes = std::max(needs.most_bytes, of_rank);
  }
  return needs;
}

}  // namespace

StatusOr<SaveMemory> AllocateSaveMemory(Communicator& communicator, int64_t bytes) {
  ZG_ASSIGN_OR_RETURN(const Needs needs, ExchangeNeeds(communicator, bytes));
  const StatusOr<AvailableMemory> available = ReadAvailableMemory();
  ZG_RETURN_IF_ERROR(ExchangeStatus(
      communicator, "check memory for saving",
      available.ok() ? CheckSaveMemory(needs.host_bytes, *available) : available.status()));
  SaveMemory memory;
  memory.bytes = bytes;
  memory.most_bytes = needs.most_bytes;
  // Zeroed, so that its pages are allocated now and not when training waits for the copy.
  memory.data.reset(new (std::nothrow) std::byte[bytes]());
  ZG_RETURN_IF_ERROR(ExchangeStatus(
      communicator, "allocate memory for saving",
      memory.data != nullptr
          ? Status::Ok()
          : FailedPrecondition("the {} bytes for a copy of the checkpoint cannot be allocated",
                               bytes)));
  return memory;
}

Status CheckSaveMemory(int64_t host_bytes, const AvailableMemory& available) {
  if (host_bytes <= available.bytes) return Status::Ok();
  return FailedPrecondition(
      "a copy of the checkpoint takes {} bytes on this host, but {} leaves {}; leave `save_async` "
      "out, or use more hosts",
      host_bytes, available.limited_by, available.bytes);
}

}  // namespace zg
