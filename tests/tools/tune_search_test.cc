#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/tools/tool_arguments.h"
#include "tools/tune/candidates.h"
#include "tools/tune/outcome_text.h"
#include "tools/tune/search.h"
#include "tools/tune/trial.h"
#include "tools/tune/tune_options.h"

namespace zg::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StatusOr<Options> Parse(const std::vector<const char*>& arguments) {
  return testing::ParseArguments(ParseCommandLine, arguments);
}

void ExpectRefused(const std::vector<const char*>& arguments, const std::string& text) {
  testing::ExpectWrongCommandLine(Parse(arguments).status(), text);
}

std::vector<std::string> NamesOf(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) names.push_back(NameOf(candidate));
  return names;
}

// A machine whose times for steps and starts are set by the test, without a process or a clock.
class FakeMachine {
 public:
  // Time of one step.
  std::function<double(const Candidate&)> ms = [](const Candidate&) { return 100; };
  std::function<Status(const Candidate&)> fails = [](const Candidate&) { return Status::Ok(); };
  bool follows_batch = true;
  int64_t batch = 8;
  double start_seconds = 1;

  StatusOr<Outcome> Search(const Options& options) {
    return tune::Search(
        options, {[&](const Candidate& candidate, int64_t steps, double seconds) {
                    return Run(candidate, steps, seconds);
                  },
                  [&] { return now_; }, [&](const std::string& text) { said.push_back(text); }});
  }

  std::vector<std::string> said;

 private:
  StatusOr<Trial> Run(const Candidate& candidate, int64_t steps, double seconds) {
    ZG_RETURN_IF_ERROR(fails(candidate));
    const double takes = start_seconds + static_cast<double>(steps) * ms(candidate) / 1e3;
    now_ += std::min(takes, seconds);
    if (takes > seconds) return DeadlineExceeded("late");
    Trial trial;
    trial.step_ms.assign(steps - 1, ms(candidate));
    trial.peak_bytes = 1000 * candidate.threads;
    trial.batch = candidate.batch > 0 ? candidate.batch : batch;
    trial.micro_batches = candidate.micro_batches > 0 ? candidate.micro_batches : candidate.ranks;
    trial.inputs = follows_batch ? "x: f32[" + std::to_string(trial.batch) + ",4]" : "x: f32[64,4]";
    return trial;
  }

  double now_ = 0;
};

TEST(TuneOptions, TakesWhatTheProgramIsToldAsFixed) {
  const auto open = Parse({"--cores", "6", "--", "sh", "--zero", "2"});
  ASSERT_TRUE(open.ok()) << open.status().message();
  EXPECT_THAT(open->ranks, ElementsAre(1, 2, 4, 6));
  EXPECT_TRUE(open->threads.empty());
  EXPECT_THAT(open->overlaps, ElementsAre("off", "unlimited"));
  EXPECT_EQ(open->seconds, 120);
  EXPECT_THAT(open->command[0], HasSubstr("/sh"));  // found on PATH

  const auto fixed = Parse({"sh", "--ranks=3", "--threads", "2", "--overlap", "auto"});
  ASSERT_TRUE(fixed.ok()) << fixed.status().message();
  EXPECT_THAT(fixed->ranks, ElementsAre(3));
  EXPECT_THAT(fixed->threads, ElementsAre(2));
  EXPECT_THAT(fixed->overlaps, ElementsAre("auto"));
  EXPECT_THAT(Parse({"sh", "--mesh", "replica=2,shard=3"})->ranks, ElementsAre(6));
  const auto asked =
      Parse({"--ranks", "2,1", "--threads", "4", "--overlap", "off,1000", "--", "sh"});
  ASSERT_TRUE(asked.ok()) << asked.status().message();
  EXPECT_THAT(asked->ranks, ElementsAre(2, 1));
  EXPECT_THAT(asked->threads, ElementsAre(4));
  EXPECT_THAT(asked->overlaps, ElementsAre("off", "1000"));
}

TEST(TuneOptions, RefusesWhatCannotWork) {
  ExpectRefused({}, "expected -- and a program");
  ExpectRefused({"--cores", "2", "--"}, "expected -- and a program");
  ExpectRefused({"--cores", "2"}, "expected -- and a program");
  ExpectRefused({"--second", "2", "--", "sh"}, "unknown flag --second; did you mean --seconds?");
  ExpectRefused({"--seconds", "0", "--", "sh"}, "--seconds: got '0', expected a number > 0");
  ExpectRefused({"--ranks", "1,,2", "--", "sh"},
                "--ranks: got '1,,2', expected numbers such as 1,2,4");
  ExpectRefused({"--threads", "0", "--", "sh"}, "--threads: got '0', expected numbers");
  ExpectRefused({"no-such-program"}, "no program no-such-program on PATH");
  ExpectRefused({"/no/such/program"}, "/no/such/program is not a program");
  ExpectRefused({"--ranks", "1", "--", "sh", "--ranks", "2"},
                "--ranks: the program's own flags say it");
  ExpectRefused({"sh", "--ranks", "x"}, "--ranks: got 'x', expected a number");
  ExpectRefused({"sh", "--mesh", "x"}, "--mesh: ");
  ExpectRefused({"sh", "--ranks-in-process", "2"},
                "--ranks-in-process: virtual ranks take other times");
  ExpectRefused({"sh", "--device", "cuda"}, "--device: got cuda, expected cpu");
}

TEST(Candidates, UseNoMoreThanTheCoresAndShareTheWorkEqually) {
  Options options;
  options.cores = 6;
  options.ranks = {1, 2, 4, 6};
  options.overlaps = {"off", "unlimited"};
  options.command = {"p"};
  const Candidates found = CandidatesFor(options, {1, 8, 1});
  EXPECT_THAT(
      NamesOf(found.candidates),
      ElementsAre("1 rank x 6 threads", "1 rank x 3 threads", "2 ranks x 3 threads, overlap off",
                  "2 ranks x 1 thread, overlap off", "4 ranks x 1 thread, overlap off"));
  EXPECT_EQ(found.candidates[0].batch, 0);  // the program's own value
  EXPECT_EQ(found.candidates[2].batch, 4);
  EXPECT_EQ(found.candidates[2].micro_batches, 2);
  ASSERT_EQ(found.left_out.size(), 1u);
  EXPECT_EQ(found.left_out[0].what, "6 ranks");
  EXPECT_THAT(found.left_out[0].why, HasSubstr("cannot share 8 samples"));
  EXPECT_EQ(NameOf(*FirstCandidate(options)), NameOf(found.candidates[0]));

  // If the ranks divide the micro-batches, these do not change.
  const Candidates divided = CandidatesFor(options, {1, 8, 12});
  for (const Candidate& candidate : divided.candidates) {
    if (candidate.ranks == 1) continue;
    EXPECT_EQ(candidate.micro_batches, 12);
    EXPECT_EQ(candidate.batch, 8);
  }

  options.ranks = {4};
  options.threads = {1, 2};
  const Candidates asked = CandidatesFor(options, {4, 8, 4});
  EXPECT_THAT(NamesOf(asked.candidates), ElementsAre("4 ranks x 1 thread, overlap off"));
  EXPECT_THAT(asked.left_out[0].what + ": " + asked.left_out[0].why,
              "4 ranks x 2 threads: more than the 6 cores");
  EXPECT_THAT(NamesOf(WithOtherOverlaps(asked.candidates[0], options)),
              ElementsAre("4 ranks x 1 thread, overlap unlimited"));
  EXPECT_TRUE(WithOtherOverlaps(found.candidates[0], options).empty());

  options.ranks = {7};
  EXPECT_EQ(FirstCandidate(options).status().message(),
            "7 ranks x 1 thread are more than the 6 cores; ask for fewer");
}

TEST(Candidates, RunTheProgramWithItsFlags) {
  Options options;
  options.command = {"p",       "--zero", "2",      "--save", "d", "--save-async",
                     "--steps", "9",      "--data", "a b"};
  const Candidate candidate = {2, 3, "off", 4, 2};
  EXPECT_EQ(ShellText(CommandOf(candidate, options)),
            "p --zero 2 --save d --save-async --steps 9 --data 'a b' --ranks 2 --threads 3 "
            "--overlap off --batch 4 --micro-batches 2");
  EXPECT_EQ(ShellText(TrialCommandOf(candidate, options, 5, "/r.json")),
            "p --zero 2 --steps 5 --data 'a b' --ranks 2 --threads 3 --overlap off --batch 4 "
            "--micro-batches 2 --report /r.json");
  EXPECT_EQ(ShellText({"it's", "", "blocks.*"}), "'it'\\''s' '' 'blocks.*'");
}

TEST(Search, FindsTheFastestAndDropsTheHopeless) {
  FakeMachine machine;
  machine.ms = [](const Candidate& candidate) {
    if (candidate.ranks == 2) return candidate.overlap == "off" ? 95.0 : 90.0;
    return candidate.threads == 2 ? 100.0 : 190.0;
  };
  const Options options = *Parse({"--cores", "2", "--", "sh"});
  const StatusOr<Outcome> outcome = machine.Search(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  std::vector<Candidate> tried;
  for (const Tried& way : outcome->tried) tried.push_back(way.candidate);
  EXPECT_THAT(NamesOf(tried), ElementsAre("2 ranks x 1 thread, overlap unlimited",
                                          "2 ranks x 1 thread, overlap off", "1 rank x 2 threads",
                                          "1 rank x 1 thread"));
  EXPECT_EQ(outcome->rounds, 5);
  EXPECT_TRUE(outcome->tried[3].is_hopeless);
  EXPECT_GT(outcome->tried[0].step_ms.size(), outcome->tried[3].step_ms.size());
  // In turns: every round has each of them once.
  EXPECT_EQ(machine.said.size(), 5u + 4 * 3);
  for (int round = 1; round < 5; ++round) {
    const auto begin = machine.said.begin() + 5 + (round - 1) * 3;
    EXPECT_EQ(std::set<std::string>(begin, begin + 3).size(), 3u);
  }
  const std::string text = OutcomeText(*outcome, options, 42);
  EXPECT_THAT(text, HasSubstr("8 samples per step on 2 cores; 5 rounds in 42 s"));
  EXPECT_THAT(text, HasSubstr("unlimited      4              2         90.0       88.9"));
  EXPECT_THAT(
      text,
      HasSubstr("sh --ranks 2 --threads 1 --overlap unlimited --batch 4 --micro-batches 2\n"));
}

TEST(Search, TakesTheMedianOfNoisyTimes) {
  FakeMachine machine;
  int trials = 0;
  machine.ms = [&](const Candidate& candidate) {
    return ++trials == 3 ? 200.0 : candidate.threads == 2 ? 50.0 : 60.0;
  };
  machine.start_seconds = 2;
  const StatusOr<Outcome> outcome =
      machine.Search(*Parse({"--cores", "2", "--ranks", "1", "--", "sh"}));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->tried[0].median_ms(), 50);
}

TEST(Search, KeepsTheTime) {
  FakeMachine machine;
  machine.ms = [](const Candidate&) { return 1000; };
  const StatusOr<Outcome> outcome =
      machine.Search(*Parse({"--cores", "2", "--ranks", "1", "--seconds", "30", "--", "sh"}));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->rounds, 2);  // of 2 ways, 5 seconds each
  const StatusOr<Outcome> too_short =
      machine.Search(*Parse({"--cores", "2", "--seconds", "29", "--", "sh"}));
  ASSERT_FALSE(too_short.ok());
}

TEST(Search, SaysWhenTheTimeIsTooShort) {
  const auto message = [](const char* seconds, const char* ranks) {
    FakeMachine machine;
    return machine
        .Search(*Parse({"--cores", "4", "--seconds", seconds, "--ranks", ranks, "--", "sh"}))
        .status()
        .message();
  };
  EXPECT_THAT(message("1", "1"), HasSubstr("--seconds: 1 are too few for 4 steps of "));
  EXPECT_THAT(
      message("8", "1,2,4"),
      HasSubstr("--seconds: 8 are too few to try 5 ways once: 2 took 8.0 s; give at least 24"));
}

TEST(Search, LeavesOutWhatFailsOrDoesOtherWork) {
  const Options options = *Parse({"--cores", "2", "--", "sh"});
  FakeMachine fails_with_two;
  fails_with_two.fails = [](const Candidate& candidate) {
    return candidate.ranks == 2 ? FailedPrecondition("no mpirun") : Status::Ok();
  };
  const StatusOr<Outcome> outcome = fails_with_two.Search(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->tried.size(), 2u);
  EXPECT_THAT(OutcomeText(*outcome, options, 1),
              HasSubstr("left out: 2 ranks x 1 thread, overlap off: no mpirun"));

  FakeMachine fixed_batch;
  fixed_batch.follows_batch = false;
  const StatusOr<Outcome> same = fixed_batch.Search(options);
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_EQ(same->tried.size(), 2u);
  EXPECT_THAT(same->left_out[0].why, HasSubstr("the program does not follow --batch 4"));

  FakeMachine fails_always;
  fails_always.fails = [](const Candidate&) { return FailedPrecondition("no data"); };
  EXPECT_THAT(fails_always.Search(options).status().message(),
              HasSubstr("/sh with 1 rank x 2 threads: no data"));

  FakeMachine fails_later;
  int trials = 0;
  fails_later.fails = [&](const Candidate& candidate) {
    return ++trials > 4 && candidate.threads == 2 ? FailedPrecondition("tired") : Status::Ok();
  };
  const StatusOr<Outcome> without = fails_later.Search(options);
  ASSERT_TRUE(without.ok()) << without.status().message();
  for (const Tried& tried : without->tried) EXPECT_EQ(tried.candidate.threads, 1);
  EXPECT_EQ(without->left_out.size(), 1u);

  FakeMachine stopped;
  stopped.fails = [](const Candidate&) { return Aborted("stopped by a signal"); };
  EXPECT_EQ(stopped.Search(options).status().message(), "stopped by a signal");
}

TEST(ReadTrial, TakesTheStepsAfterTheFirst) {
  const StatusOr<Trial> trial = ReadTrial(R"({"inputs": "x: f32[4]",
      "config": {"batch": 4, "micro-batches": 2}, "memory": {"per_rank_peak": [5, 7, 6]},
      "steps": [{"ms": 90.0}, {"ms": 10.5}, {"ms": 11}]})");
  ASSERT_TRUE(trial.ok()) << trial.status().message();
  EXPECT_THAT(trial->step_ms, ElementsAre(10.5, 11));
  EXPECT_EQ(trial->peak_bytes, 7);
  EXPECT_EQ(trial->batch, 4);
  EXPECT_EQ(trial->micro_batches, 2);
  EXPECT_EQ(trial->inputs, "x: f32[4]");
  for (const char* text : {"", "{", "[]", "{\"config\": 3}"}) {
    EXPECT_THAT(ReadTrial(text).status().message(),
                HasSubstr("is not one of a program with a Job"));
  }
  EXPECT_THAT(ReadTrial(R"({"inputs": "", "config": {"batch": 4, "micro-batches": 2},
                            "memory": {"per_rank_peak": []}, "steps": [{"ms": 90.0}]})")
                  .status()
                  .message(),
              "its report has 1 steps, expected 2 or more");
}

}  // namespace
}  // namespace zg::tune
