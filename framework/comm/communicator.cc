#include "framework/comm/communicator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace zg {

std::vector<int> AllRanks(int num_ranks) {
  std::vector<int> ranks(num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

StatusOr<Group*> Communicator::GroupOf(const std::vector<int>& ranks, bool for_thread) {
  if (ranks == world().ranks() && !for_thread) return &world();
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const bool are_distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  const bool are_in_job = !sorted.empty() && sorted.front() >= 0 && sorted.back() < size();
  if (!are_distinct || !are_in_job || !std::binary_search(sorted.begin(), sorted.end(), rank())) {
    return InvalidArgument(
        "rank {} asks for the group of ranks {}, expected distinct ranks of the {} in the job and "
        "itself among them",
        rank(), fmt::join(ranks, ", "), size());
  }
  // A group that one rank has found may be missing on another.
  const auto found = groups_.find(ranks);
  const bool has_group = found != groups_.end();
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      Exchange("groups", has_group ? "has" : "lacks"));
  if (std::count(all.begin(), all.end(), "lacks") == 0) return found->second;
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Group> group, MakeGroup(ranks));
  made_groups_.push_back(std::move(group));
  return groups_[ranks] = made_groups_.back().get();
}

Status Communicator::Call::status() const {
  if (is_alone_) return Status::Ok();
  return FailedPrecondition(
      "two threads use the communicator of rank {} at once; make trainers, and take their steps, in one "
      "thread of a rank",
      communicator_.rank());
}

StatusOr<std::unique_ptr<Communicator>> Communicator::Duplicate() {
  return FailedPrecondition("{}: it connects the ranks for one program at a time", transport());
}

}  // namespace zg
