#include "framework/job/rank_output.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

namespace zg {
namespace {

// "[1,RANK]<stdout>:", "[1,RANK]<stderr>:"
struct Tag {
  size_t begin = std::string_view::npos;
  size_t end = std::string_view::npos;
  int rank = 0;
};

Tag FindTag(std::string_view text) {
  constexpr std::string_view kBegin = "[1,";
  for (size_t begin = text.find(kBegin); begin != std::string_view::npos;
       begin = text.find(kBegin, begin + 1)) {
    const char* const digits = text.data() + begin + kBegin.size();
    Tag tag;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), tag.rank);
    if (error != std::errc()) continue;
    for (const std::string_view rest : {"]<stdout>:", "]<stderr>:"}) {
      tag.begin = begin;
      tag.end = static_cast<size_t>(end - text.data()) + rest.size();
      if (text.substr(end - text.data(), rest.size()) == rest) return tag;
    }
  }
  return {};
}

}  // namespace

std::string RankOutput::Filter(Stream stream, std::string_view bytes) {
  StreamState& state = streams_[stream];
  std::string shown;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    state.raw += bytes.substr(0, end);
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    shown += TakeRawLine(stream, std::exchange(state.raw, ""));
  }
  return shown;
}

// mpirun begins every line with the tag of the rank that wrote it. It repeats the tag when a rank's
// next piece comes in the middle of a line, possibly of another rank's.
std::string RankOutput::TakeRawLine(Stream stream, std::string_view line) {
  StreamState& state = streams_[stream];
  int owner = kMpirun;
  while (true) {
    const Tag tag = FindTag(line);
    state.by_rank[owner] += line.substr(0, tag.begin);
    if (tag.begin == std::string_view::npos) break;
    line.remove_prefix(tag.end);
    owner = tag.rank;
  }
  return EndLine(stream, owner, std::exchange(state.by_rank[owner], ""));
}

std::string RankOutput::EndLine(Stream stream, int owner, std::string line) {
  if (owner != kMpirun) {
    if (stream == kErrors && !first_rank_with_error_ &&
        line.rfind(fmt::format("rank {}: ", owner), 0) == 0) {
      first_rank_with_error_ = owner;
    }
    std::deque<std::string>& lines = last_lines_[owner];
    lines.push_back(line);
    if (lines.size() > kMaxLines) lines.pop_front();
  }
  return std::move(line) + "\n";
}

std::string RankOutput::Finish(Stream stream) {
  StreamState& state = streams_[stream];
  std::string shown;
  if (!state.raw.empty()) shown += TakeRawLine(stream, std::exchange(state.raw, ""));
  for (auto& [owner, line] : state.by_rank) {
    if (!line.empty()) shown += EndLine(stream, owner, std::exchange(line, ""));
  }
  return shown;
}

std::vector<std::string> RankOutput::LastLines(int rank) const {
  const auto found = last_lines_.find(rank);
  if (found == last_lines_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

}  // namespace zg
