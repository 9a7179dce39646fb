#include "framework/runtime/save_memory.h"

#include <unistd.h>

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

// Of all ranks on this rank's host.
StatusOr<int64_t> HostBytes(Communicator& communicator, int64_t bytes) {
  const std::string host = HostName() + "\n";
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> needs,
                      communicator.Exchange("memory for saving", host + std::to_string(bytes)));
  int64_t sum = 0;
  for (const std::string& need : needs) {
    if (need.compare(0, host.size(), host) == 0) sum += std::stoll(need.substr(host.size()));
  }
  return sum;
}

}  // namespace

StatusOr<SaveMemory> AllocateSaveMemory(Communicator& communicator, int64_t bytes) {
  ZG_ASSIGN_OR_RETURN(const int64_t host_bytes, HostBytes(communicator, bytes));
  const StatusOr<AvailableMemory> available = ReadAvailableMemory();
  ZG_RETURN_IF_ERROR(ExchangeStatus(
      communicator, "check memory for saving",
      available.ok() ? CheckSaveMemory(host_bytes, *available) : available.status()));
  SaveMemory memory;
  memory.bytes = bytes;
  // Zeroed, so that its pages are there now and not first when training waits for the copy.
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
      "a copy of the checkpoint takes {} bytes on this host, but {} leaves {}; leave --save-async "
      "out, or use more hosts",
      host_bytes, available.limited_by, available.bytes);
}

}  // namespace zg
