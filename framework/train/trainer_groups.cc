// Steps that update the parameters of some groups only.
#include <fmt/format.h>

#include <algorithm>

#include "framework/train/trainer.h"

namespace zg {
namespace {

Status CheckGroupsAreApart(const CompileOptions& options) {
  const char* const shared =
      options.max_grad_norm > 0.0 ? "`max_grad_norm`" : options.one_count_setting();
  if (shared == nullptr) return Status::Ok();
  return InvalidArgument(
      "step_groups: with {} all groups share the norm of the gradients or the count of updates; update "
      "all of them, or leave that out",
      shared);
}

bool IsIdle(const Program& program, size_t group) {
  return !program.is_idle.empty() && program.is_idle[group];
}

}  // namespace

StatusOr<float> Trainer::step(const std::function<Status(int64_t micro_batch)>& feed) {
  return RunStep(feed, "", std::vector<bool>(skipped_.size(), true));
}

// The numbers of the groups' updates in step step_; 0: none. Groups that are not named skip it, and so
// do those that its phase does not train, whose updates its program lacks.
std::vector<int64_t> Trainer::NumberUpdates(const std::vector<bool>& is_named) {
  const Program& program = stepping_program();
  std::vector<int64_t> numbers;
  for (size_t group = 0; group < skipped_.size(); ++group) {
    const bool is_idle = IsIdle(program, group);
    numbers.push_back(is_named[group] || is_idle ? step_ - skipped_[group] : 0);
    if (!is_named[group] || is_idle) ++skipped_[group];
  }
  return numbers;
}

StatusOr<float> Trainer::step_groups(const std::vector<std::string>& groups,
                                     const std::function<Status(int64_t micro_batch)>& feed) {
  ZG_RETURN_IF_ERROR(CheckGroupsAreApart(program_.options));
  const Program& program = stepping_program();
  const std::vector<std::string>& known = program.group_names;
  std::vector<bool> is_named(known.size());
  for (const std::string& group : groups) {
    const std::optional<size_t> number = FindGroup(group);
    if (!number) {
      return InvalidArgument("step_groups: got '{}', expected groups among '{}'", group,
                             fmt::join(known, "', '"));
    }
    if (IsIdle(program, *number)) {
      return InvalidArgument("step_groups: got '{}', which {} does not train", group,
                             variant_.ToString());
    }
    is_named[*number] = true;
  }
  if (groups.empty()) {
    return InvalidArgument("step_groups: got no group, expected some of '{}'",
                           fmt::join(known, "', '"));
  }
  std::string names;
  for (size_t group = 0; group < known.size(); ++group) {
    if (is_named[group]) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", known[group]);
  }
  return RunStep(feed, names, is_named);
}

StatusOr<float> Trainer::step(const std::vector<NamedData>& data) {
  ZG_RETURN_IF_ERROR(CheckOneMicroBatch("step"));
  return step([&](int64_t) { return FeedAll(data); });
}

StatusOr<float> Trainer::step_groups(const std::vector<std::string>& groups,
                                     const std::vector<NamedData>& data) {
  ZG_RETURN_IF_ERROR(CheckOneMicroBatch("step_groups"));
  return step_groups(groups, [&](int64_t) { return FeedAll(data); });
}

// Data that stays valid during the step.
Status Trainer::FeedAll(const std::vector<NamedData>& data) {
  for (const NamedData& item : data) ZG_RETURN_IF_ERROR(FeedOne(item, /*is_copied=*/false));
  return Status::Ok();
}

Status Trainer::CheckOneMicroBatch(const char* function) const {
  if (micro_batches_per_rank() == 1) return Status::Ok();
  return InvalidArgument(
      "a step has {} micro-batches per rank: give {}() a function that feeds each of them",
      micro_batches_per_rank(), function);
}

std::optional<size_t> Trainer::FindGroup(const std::string& name) const {
  const std::vector<std::string>& known = program_.group_names;
  const auto found = std::find(known.begin(), known.end(), name);
  if (found == known.end()) return std::nullopt;
  return static_cast<size_t>(found - known.begin());
}

std::map<std::string, int64_t> Trainer::skipped_steps() const {
  std::map<std::string, int64_t> skipped;
  for (size_t group = 0; group < skipped_.size(); ++group) {
    if (skipped_[group] > 0) skipped[program_.group_names[group]] = skipped_[group];
  }
  return skipped;
}

Status Trainer::set_skipped_steps(const std::map<std::string, int64_t>& skipped) {
  std::vector<int64_t> counts(program_.group_names.size());
  for (const auto& [name, count] : skipped) {
    const std::optional<size_t> group = FindGroup(name);
    if (!group) {
      return InvalidArgument("steps of the parameter group '{}', which the program does not have",
                             name);
    }
    counts[*group] = count;
  }
  skipped_ = std::move(counts);
  return Status::Ok();
}

}  // namespace zg
