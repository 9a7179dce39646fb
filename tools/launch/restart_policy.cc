#include "tools/launch/restart_policy.h"

#include <fmt/core.h>

namespace zg::launch {
namespace {

constexpr int kWrongCommandLine = 2;

}  // namespace

std::optional<int> RestartPolicy::Next(const AttemptEnd& end) {
  const auto stop = [&](std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  };
  if (end.code == 0) return stop("finished");
  if (end.was_stopped) return stop("stopped by a signal");
  if (end.code == kWrongCommandLine) {
    return stop("the program refuses its command line, which no restart changes");
  }
  if (num_restarts_ == limits_.max_restarts) {
    return stop(limits_.max_restarts == 0
                    ? std::string("no restarts are allowed (--max-restarts 0)")
                    : fmt::format("{} restart{} used up", limits_.max_restarts,
                                  limits_.max_restarts == 1 ? " is" : "s are"));
  }
  const bool is_stuck = num_restarts_ > 0 && !end.has_saved;
  ++num_restarts_;
  why_ = fmt::format("restart {} of {}", num_restarts_, limits_.max_restarts);
  const int fewer_ranks = FewerRanks();
  if (is_stuck && fewer_ranks < num_ranks_) {
    why_ += fmt::format(", with {} instead of {} ranks because the last one saved nothing new",
                        fewer_ranks, num_ranks_);
    num_ranks_ = fewer_ranks;
  }
  return num_ranks_;
}

int RestartPolicy::FewerRanks() const {
  for (int ranks = num_ranks_ - 1; ranks >= limits_.min_ranks; --ranks) {
    if (limits_.micro_batches % ranks == 0) return ranks;
  }
  return num_ranks_;
}

}  // namespace zg::launch
