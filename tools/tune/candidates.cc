#include "tools/tune/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "framework/base/format.h"
#include "tools/command/program_arguments.h"

namespace zg::tune {
namespace {

using command::WithFlag;
using command::WithoutFlag;
using command::WithoutSwitch;

bool Fits(int ranks, int threads, const Options& options) {
  return ranks <= options.cores && threads <= options.cores / ranks;
}

// The largest number first.
std::vector<int> ThreadsFor(int ranks, const Options& options) {
  std::vector<int> threads = options.threads;
  if (threads.empty()) {
    const int most = std::max(1, options.cores / ranks);
    threads = {most};
    if (most > 1) threads.push_back(most / 2);
  }
  std::sort(threads.rbegin(), threads.rend());
  return threads;
}

std::vector<int> Ascending(std::vector<int> counts) {
  std::sort(counts.begin(), counts.end());
  return counts;
}

bool NeedsQuotes(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%";
  return argument.empty() || argument.find_first_not_of(kPlain) != std::string::npos;
}

std::string Quoted(const std::string& argument) {
  if (!NeedsQuotes(argument)) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string NameOf(const Candidate& candidate) {
  return fmt::format("{} x {}{}", Counted(candidate.ranks, "rank"),
                     Counted(candidate.threads, "thread"),
                     candidate.overlap.empty() ? "" : ", overlap " + candidate.overlap);
}

StatusOr<Candidate> FirstCandidate(const Options& options) {
  for (const int ranks : Ascending(options.ranks)) {
    for (const int threads : ThreadsFor(ranks, options)) {
      if (!Fits(ranks, threads, options)) continue;
      return Candidate{ranks, threads, ranks == 1 ? "" : options.overlaps[0]};
    }
  }
  const int ranks = Ascending(options.ranks)[0];
  return InvalidArgument("{} are more than the {}; ask for fewer",
                         NameOf({ranks, ThreadsFor(ranks, options).back()}),
                         Counted(options.cores, "core"));
}

Candidates CandidatesFor(const Options& options, const Work& work) {
  Candidates result;
  for (const int ranks : Ascending(options.ranks)) {
    Candidate candidate;
    candidate.ranks = ranks;
    if (ranks > 1) candidate.overlap = options.overlaps[0];
    if (ranks != work.ranks) {
      candidate.micro_batches = work.micro_batches % ranks == 0 ? work.micro_batches : ranks;
      candidate.batch = work.samples() / candidate.micro_batches;
      if (candidate.batch * candidate.micro_batches != work.samples()) {
        result.left_out.push_back(
            {Counted(ranks, "rank"),
             fmt::format("they cannot share {} samples per step equally", work.samples())});
        continue;
      }
    }
    for (const int threads : ThreadsFor(ranks, options)) {
      candidate.threads = threads;
      if (Fits(ranks, threads, options)) {
        result.candidates.push_back(candidate);
      } else {
        result.left_out.push_back(
            {NameOf({ranks, threads}),
             fmt::format("more than the {}", Counted(options.cores, "core"))});
      }
    }
  }
  return result;
}

std::vector<Candidate> WithOtherOverlaps(const Candidate& candidate, const Options& options) {
  std::vector<Candidate> others;
  for (const std::string& overlap : options.overlaps) {
    if (candidate.ranks == 1 || overlap == candidate.overlap) continue;
    others.push_back(candidate);
    others.back().overlap = overlap;
  }
  return others;
}

std::vector<std::string> CommandOf(const Candidate& candidate, const Options& options) {
  std::vector<std::string> command = options.command;
  const auto set = [&](std::string_view flag, const std::string& value) {
    command = WithFlag(command, flag, value);
  };
  set("ranks", std::to_string(candidate.ranks));
  set("threads", std::to_string(candidate.threads));
  if (!candidate.overlap.empty()) set("overlap", candidate.overlap);
  if (candidate.batch > 0) set("batch", std::to_string(candidate.batch));
  if (candidate.micro_batches > 0) set("micro-batches", std::to_string(candidate.micro_batches));
  return command;
}

std::vector<std::string> TrialCommandOf(const Candidate& candidate, const Options& options,
                                        int64_t steps, const std::string& report) {
  std::vector<std::string> command = CommandOf(candidate, options);
  // A few steps have no warm-up, and do not resume from a checkpoint.
  for (const char* flag : {"save", "save-every", "keep", "resume", "metrics", "metrics-histograms",
                           "trace", "trace-steps", "warmup-steps", "print-ir"}) {
    command = WithoutFlag(command, flag);
  }
  for (const char* flag : {"save-async", "profile"}) command = WithoutSwitch(command, flag);
  return WithFlag(WithFlag(command, "steps", std::to_string(steps)), "report", report);
}

std::string ShellText(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& argument : command) text += (text.empty() ? "" : " ") + Quoted(argument);
  return text;
}

}  // namespace zg::tune
