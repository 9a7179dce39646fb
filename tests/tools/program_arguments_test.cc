#include "tools/command/program_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zg::command {
namespace {

using ::testing::ElementsAre;

TEST(ProgramArguments, FindsAFlag) {
  const std::vector<std::string> arguments = {"p", "--save-every", "3", "--save", "a", "--keep=2"};
  EXPECT_EQ(FlagIn(arguments, "save"), "a");
  EXPECT_EQ(FlagIn(arguments, "keep"), "2");
  EXPECT_FALSE(FlagIn(arguments, "resume").has_value());
  EXPECT_FALSE(FlagIn({"p", "--save"}, "save").has_value());
}

TEST(ProgramArguments, ReplacesOrAddsAFlag) {
  EXPECT_THAT(WithFlag({"p", "--resume", "a", "--x"}, "resume", "b"),
              ElementsAre("p", "--resume", "b", "--x"));
  EXPECT_THAT(WithFlag({"p", "--resume=a", "--x"}, "resume", "b"),
              ElementsAre("p", "--resume=b", "--x"));
  EXPECT_THAT(WithFlag({"p", "--x"}, "resume", "b"), ElementsAre("p", "--x", "--resume", "b"));
}

TEST(ProgramArguments, RemovesAFlag) {
  EXPECT_THAT(WithoutFlag({"p", "--init", "a", "--x"}, "init"), ElementsAre("p", "--x"));
  EXPECT_THAT(WithoutFlag({"p", "--init=a", "--x"}, "init"), ElementsAre("p", "--x"));
  EXPECT_THAT(WithoutFlag({"p", "--initial", "a"}, "init"), ElementsAre("p", "--initial", "a"));
}

TEST(ProgramArguments, RemovesASwitch) {
  EXPECT_THAT(WithoutSwitch({"p", "--profile", "a", "--no-profile"}, "profile"),
              ElementsAre("p", "a"));
  EXPECT_THAT(WithoutSwitch({"p", "--profiles"}, "profile"), ElementsAre("p", "--profiles"));
}

}  // namespace
}  // namespace zg::command
