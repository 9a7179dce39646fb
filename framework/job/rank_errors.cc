#include "framework/job/rank_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace zg {

// The first character is the code.
std::string PackStatus(const Status& status) {
  if (status.ok()) return "";
  return static_cast<char>('A' + static_cast<int>(status.code())) + status.message();
}

Status UnpackStatus(const std::string& packed) {
  if (packed.empty()) return Status::Ok();
  return Status(static_cast<StatusCode>(packed[0] - 'A'), packed.substr(1));
}

std::string FormatRanks(const std::vector<int>& ranks) {
  constexpr size_t kMaxListed = 8;
  std::string list;
  for (size_t i = 0; i < std::min(ranks.size(), kMaxListed); ++i) {
    list += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  if (ranks.size() > kMaxListed) list += fmt::format(" and {} more", ranks.size() - kMaxListed);
  return (ranks.size() == 1 ? "rank " : "ranks ") + list;
}

std::string FormatErrors(const std::vector<Status>& by_rank) {
  constexpr size_t kMaxErrorsShown = 4;
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].ok()) continue;
    const std::string& message = by_rank[rank].message();
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& other) { return other.first == message; });
    if (group == groups.end()) group = groups.insert(group, {message, {}});
    group->second.push_back(static_cast<int>(rank));
  }
  std::string text;
  for (size_t i = 0; i < std::min(groups.size(), kMaxErrorsShown); ++i) {
    const auto& [message, ranks] = groups[i];
    const bool is_everywhere = ranks.size() == by_rank.size();
    text += fmt::format("error{}: {}\n", is_everywhere ? "" : " on " + FormatRanks(ranks), message);
  }
  if (groups.size() > kMaxErrorsShown) {
    text += fmt::format("and {} other errors\n", groups.size() - kMaxErrorsShown);
  }
  return text;
}

int ExitCode(StatusCode code) { return code == StatusCode::kInvalidArgument ? 2 : 1; }

}  // namespace zg
