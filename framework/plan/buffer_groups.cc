#include "framework/plan/buffer_groups.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

namespace zg::plan {
namespace {

constexpr std::string_view kBucket = "bucket";

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// A part of a dotted name without its number: "17" and "bucket3", but not "norm1".
std::string WithoutNumber(std::string_view part) {
  const std::string_view prefix = part.substr(0, kBucket.size()) == kBucket ? kBucket : "";
  const std::string_view rest = part.substr(prefix.size());
  if (rest.empty() || !std::all_of(rest.begin(), rest.end(), IsDigit)) return std::string(part);
  return std::string(prefix) + "*";
}

std::string Pattern(std::string_view name) {
  std::string pattern;
  while (true) {
    const size_t dot = name.find('.');
    pattern += WithoutNumber(name.substr(0, dot));
    if (dot == std::string_view::npos) return pattern;
    pattern += ".";
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

std::vector<BufferGroup> GroupBuffers(const std::vector<PlannedBuffer>& buffers) {
  std::vector<BufferGroup> groups;
  std::map<std::pair<std::string, MemoryCategory>, size_t> found;
  for (const PlannedBuffer& buffer : buffers) {
    const std::string pattern = Pattern(buffer.name);
    const auto [group, is_new] = found.try_emplace({pattern, buffer.category}, groups.size());
    if (is_new) {
      groups.push_back({buffer.name, buffer.category, 0, 0});
    } else {
      groups[group->second].name = pattern;
    }
    ++groups[group->second].count;
    groups[group->second].bytes += buffer.bytes;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const BufferGroup& a, const BufferGroup& b) { return a.bytes > b.bytes; });
  return groups;
}

}  // namespace zg::plan
