#include "framework/job/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>

namespace zg {
namespace {

constexpr char kStatusFile[] = "/proc/self/status";
constexpr char kClearRefsFile[] = "/proc/self/clear_refs";

// A line `Name:      1234 kB`.
StatusOr<int64_t> ParseLine(std::string_view text, std::string_view name) {
  const std::string key = fmt::format("{}:", name);
  while (!text.empty() && text.substr(0, key.size()) != key) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  if (text.empty()) return FailedPrecondition("{}: there is no line {}", kStatusFile, name);
  const std::string_view line = text.substr(0, text.find('\n'));
  std::string_view value = line.substr(key.size());
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  int64_t kilobytes = 0;
  const char* const end = value.data() + value.size();
  const auto [parsed_to, error] = std::from_chars(value.data(), end, kilobytes);
  if (error != std::errc() || std::string_view(parsed_to, end - parsed_to) != " kB" ||
      kilobytes < 0 || kilobytes > std::numeric_limits<int64_t>::max() / 1024) {
    return FailedPrecondition("{}: got '{}', expected '{}: NUMBER kB'", kStatusFile, line, name);
  }
  return kilobytes * 1024;
}

}  // namespace

StatusOr<ProcessMemory> ParseProcessStatus(std::string_view text) {
  ProcessMemory memory;
  ZG_ASSIGN_OR_RETURN(memory.resident_bytes, ParseLine(text, "VmRSS"));
  ZG_ASSIGN_OR_RETURN(memory.peak_resident_bytes, ParseLine(text, "VmHWM"));
  ZG_ASSIGN_OR_RETURN(memory.shared_resident_bytes, ParseLine(text, "RssShmem"));
  return memory;
}

StatusOr<ProcessMemory> ReadProcessMemory() {
  const int file = open(kStatusFile, O_RDONLY | O_CLOEXEC);
  if (file < 0) return FailedPrecondition("{}: {}", kStatusFile, std::strerror(errno));
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(file, buffer, sizeof(buffer))) > 0) text.append(buffer, count);
  const int error = errno;
  close(file);
  if (count < 0) return FailedPrecondition("{}: {}", kStatusFile, std::strerror(error));
  return ParseProcessStatus(text);
}

Status ResetPeakResidentBytes() {
  const int file = open(kClearRefsFile, O_WRONLY | O_CLOEXEC);
  if (file < 0) return FailedPrecondition("{}: {}", kClearRefsFile, std::strerror(errno));
  const ssize_t written = write(file, "5", 1);  // proc(5): reset the peak resident set size
  const int error = errno;
  close(file);
  if (written != 1) return FailedPrecondition("{}: {}", kClearRefsFile, std::strerror(error));
  return Status::Ok();
}

}  // namespace zg
