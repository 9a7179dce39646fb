#include "framework/comm/available_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

#include "framework/base/format.h"

namespace zg {
namespace {

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number after `key` at the start of a line, or of the text if there is no key.
std::optional<int64_t> FindNumber(std::string_view text, std::string_view key) {
  while (text.substr(0, key.size()) != key) {
    const size_t newline = text.find('\n');
    if (newline == std::string_view::npos) return std::nullopt;
    text.remove_prefix(newline + 1);
  }
  text.remove_prefix(key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;  // "max", for one
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(number, kMax));
}

std::optional<int64_t> ReadNumber(const std::string& path, std::string_view key = "") {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return std::nullopt;
  return FindNumber(*text, key);
}

// The files of a memory cgroup: version 2 and version 1 name them differently.
struct CgroupFiles {
  std::string mount;
  std::string limit;
  std::string usage;
  std::string inactive_file;  // in memory.stat: page cache, which the kernel releases on demand
};

void LimitByCgroup(const CgroupFiles& files, const std::string& root, std::string group,
                   AvailableMemory& available) {
  // The limits of all parent groups count too. Inside a container the path may be the host's, and
  // the container's own group may be mounted: then only the last step, "", finds files.
  while (true) {
    const std::string dir = files.mount + (group == "/" ? "" : group);
    const std::optional<int64_t> limit = ReadNumber(root + dir + "/" + files.limit);
    const std::optional<int64_t> usage = ReadNumber(root + dir + "/" + files.usage);
    if (limit && usage) {
      const int64_t cache =
          ReadNumber(root + dir + "/memory.stat", files.inactive_file + " ").value_or(0);
      const int64_t left = std::max<int64_t>(0, *limit - std::max<int64_t>(0, *usage - cache));
      if (left < available.bytes) available = {left, dir + "/" + files.limit};
    }
    const size_t last_slash = group.rfind('/');
    if (last_slash == std::string::npos || group == "/") return;
    group.resize(last_slash);
  }
}

}  // namespace

StatusOr<AvailableMemory> ReadAvailableMemory(const std::string& root) {
  const std::optional<int64_t> kibibytes = ReadNumber(root + "/proc/meminfo", "MemAvailable:");
  if (!kibibytes) return FailedPrecondition("/proc/meminfo has no MemAvailable; is /proc mounted?");
  AvailableMemory available{*kibibytes * 1024, "MemAvailable in /proc/meminfo"};

  // Lines "0::/path" (version 2) and "4:memory:/path" (version 1).
  std::istringstream groups(ReadFile(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      LimitByCgroup({"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}, root,
                    group, available);
    } else if (controllers.find(",memory,") != std::string::npos) {
      LimitByCgroup({"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                     "total_inactive_file"},
                    root, group, available);
    }
  }
  return available;
}

Status CheckMemoryFor(int64_t arena_bytes, int num_ranks, const AvailableMemory& available) {
  if (arena_bytes < 0) return InvalidArgument("an arena of {} bytes", arena_bytes);
  if (arena_bytes <= available.bytes / num_ranks) return Status::Ok();
  const int64_t max = std::numeric_limits<int64_t>::max();
  const int64_t required = arena_bytes > max / num_ranks ? max : arena_bytes * num_ranks;
  return FailedPrecondition(
      "{} on this host need {} for their arenas, but {} are available (limited by {}); use a higher "
      "ZeRO stage, smaller micro-batches or fewer ranks per host",
      Counted(num_ranks, "rank"), FormatExactBytes(required), FormatExactBytes(available.bytes),
      available.limited_by);
}

}  // namespace zg
