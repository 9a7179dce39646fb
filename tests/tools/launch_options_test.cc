#include "tools/launch/launch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/tools/tool_arguments.h"

namespace zg::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StatusOr<Options> Parse(const std::vector<const char*>& arguments) {
  return testing::ParseArguments(ParseCommandLine, arguments);
}

void ExpectRefused(const std::vector<const char*>& arguments, const std::string& text) {
  testing::ExpectWrongCommandLine(Parse(arguments).status(), text);
}

TEST(LaunchOptions, TheProgramsArgumentsStayAsTheyAre) {
  const auto options = Parse({"--ranks", "4", "--", "/bin/sh", "--steps", "--", "", "-x"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_THAT(options->command, ElementsAre("/bin/sh", "--steps", "--", "", "-x"));
  EXPECT_EQ(options->ranks, 4);
  EXPECT_EQ(options->min_ranks, 4);
  EXPECT_EQ(options->micro_batches, 4);  // the program's default, one per rank
  EXPECT_EQ(options->save, "");
}

TEST(LaunchOptions, ReadsTheProgramsFlags) {
  const auto options =
      Parse({"--ranks", "4", "--min-ranks", "1", "--", "sh", "--save=d", "--micro-batches", "8"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_THAT(options->command[0], HasSubstr("/sh"));  // found on PATH
  EXPECT_EQ(options->min_ranks, 1);
  EXPECT_EQ(options->micro_batches, 8);
  EXPECT_EQ(options->save, "d");
}

TEST(LaunchOptions, RefusesWhatCannotWork) {
  ExpectRefused({}, "expected -- and a program");
  ExpectRefused({"--ranks", "2", "--"}, "expected -- and a program");
  ExpectRefused({"sh"}, "unexpected argument 'sh'");
  ExpectRefused({"--rank", "2", "--", "sh"}, "unknown flag --rank; did you mean --ranks?");
  ExpectRefused({"--", "no-such-program"}, "no program no-such-program on PATH");
  ExpectRefused({"--", "/no/such/program"}, "/no/such/program is not a program");
  ExpectRefused({"--", "/tmp"}, "/tmp is not a program");
  ExpectRefused({"--", "sh", "--ranks", "2"}, "--ranks: give it before the --");
  ExpectRefused({"--min-ranks", "2", "--", "sh"}, "--min-ranks: got 2, expected at most the 1");
  ExpectRefused({"--ranks", "2", "--", "sh", "--micro-batches", "3"},
                "--micro-batches: got 3, expected a multiple of the 2 ranks");
}

// Fewer ranks are another mesh, which is not the launcher's to choose.
TEST(LaunchOptions, AMeshHasAsManyRanksInEveryAttempt) {
  ExpectRefused(
      {"--ranks", "4", "--min-ranks", "2", "--", "sh", "--mesh", "replica=2,shard=2"},
      "--min-ranks: got 2, but the program's --mesh replica=2,shard=2 has the 4 --ranks in "
      "every attempt; leave --min-ranks out");
  const auto options = Parse({"--ranks", "4", "--min-ranks", "4", "--", "sh", "--mesh=data=4"});
  EXPECT_TRUE(options.ok()) << options.status().message();
}

// Ranks along tensor share them: the program knows how many divide.
TEST(LaunchOptions, MicroBatchesOfAMeshAreTheProgramsToJudge) {
  const auto options =
      Parse({"--ranks", "4", "--", "sh", "--mesh", "data=2,tensor=2", "--micro-batches", "2"});
  EXPECT_TRUE(options.ok()) << options.status().message();
}

TEST(LaunchOptions, FillsTheHostsInOrder) {
  const auto options = Parse({"--ranks", "4", "--hosts", "a:2,b,c:3", "--", "sh"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(HostsFor(*options, 4), "a:2,b:1,c:3");
  EXPECT_EQ(HostsFor(*options, 3), "a:2,b:1");
  EXPECT_EQ(HostsFor(*options, 1), "a:2");  // no daemon on a host without ranks
  EXPECT_EQ(HostOfRank(*options, 1), "a");
  EXPECT_EQ(HostOfRank(*options, 2), "b");
  EXPECT_EQ(HostOfRank(*options, 3), "c");
  const auto here = Parse({"--", "sh"});
  EXPECT_EQ(HostsFor(*here, 1), "");
  EXPECT_EQ(HostOfRank(*here, 0), "");
  for (const char* hosts : {"a:0", "a:x", "a:2x", ":2", "a:2,,b:2"}) {
    ExpectRefused({"--ranks", "2", "--hosts", hosts, "--", "sh"}, "expected HOST:N with N >= 1");
  }
  ExpectRefused({"--ranks", "4", "--hosts", "a:2,b", "--", "sh"},
                "--hosts: got room for 3, expected it for the 4 --ranks");
}

}  // namespace
}  // namespace zg::launch
