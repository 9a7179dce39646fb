#include "framework/io/train_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/test_file.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

TrainState SomeState() { return {"gpt", 100, 98, {{"seed", "1"}, {"batch", "8"}}, "x86-64"}; }

StatusOr<TrainState> Read(const std::string& text) {
  return ReadTrainState(WriteTestFile("train_state_test.json", text));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t position = text.find(from);
  EXPECT_NE(position, text.npos) << from;
  return text.replace(position, from.size(), to);
}

TEST(TrainState, RoundTrip) {
  const StatusOr<TrainState> state = Read(TrainStateAsJson(SomeState()));
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->model, "gpt");
  EXPECT_EQ(state->step, 100);
  EXPECT_EQ(state->updates, 98);
  EXPECT_EQ(state->settings, SomeState().settings);
  EXPECT_EQ(state->arithmetic, "x86-64");
}

TEST(TrainState, StepsThatGroupsHaveSkipped) {
  EXPECT_EQ(TrainStateAsJson(SomeState()).find("skipped"), std::string::npos);
  TrainState turns = SomeState();
  turns.skipped_steps = {{"", 70}, {"critic", 30}};
  const std::string text = TrainStateAsJson(turns);
  const StatusOr<TrainState> state = Read(text);
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->skipped_steps, turns.skipped_steps);
  EXPECT_THAT(Read(Replaced(text, "30", "-1")).status().message(),
              HasSubstr("\"critic\": expected a whole number"));
  EXPECT_THAT(
      Read(Replaced(text, "\"model\"", "\"skipped_steps\": 1, \"model\"")).status().message(),
      HasSubstr("skipped_steps"));
}

TEST(TrainState, OfAnOlderProgramKnowsNoArithmetic) {
  TrainState older = SomeState();
  older.arithmetic.clear();
  const std::string text = TrainStateAsJson(older);
  EXPECT_EQ(text.find("arithmetic"), text.npos);
  const StatusOr<TrainState> state = Read(text);
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->arithmetic, "");
}

TEST(TrainState, EveryFieldIsCheckedAndNoneIsUnknown) {
  const std::string text = TrainStateAsJson(SomeState());
  const struct {
    const char* from;
    const char* to;
    const char* error;
  } cases[] = {
      {"\"step\": 100", "\"step\": -1", "\"step\": expected a whole number"},
      {"\"step\": 100", "\"step\": 1.5", "\"step\": expected a whole number"},
      {"\"step\": 100", "\"step\": 18446744073709551615", "\"step\": expected a whole number"},
      {"\"step\"", "\"stop\"", "the key \"stop\" is not known"},
      {"\"updates\": 98", "\"updates\": \"98\"", "\"updates\": expected a whole number"},
      {"\"gpt\"", "1", "\"model\": expected a string"},
      {"\"x86-64\"", "64", "\"arithmetic\": expected a string"},
      {"\"seed\": \"1\"", "\"seed\": 1", "\"settings\", \"seed\": expected a string"},
      {"\"format_version\": 1", "\"format_version\": 2", "format version 2, this program reads 1"},
      {"\"format_version\": 1", "\"format_version\": 0", "format version 0, this program reads 1"},
      {"\"model\": \"gpt\",", "\"model\": \"gpt\", \"model\": \"gpt\",", "is there twice"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(Read(Replaced(text, test.from, test.to)).status().message(), HasSubstr(test.error))
        << test.to;
  }
}

TEST(TrainState, SettingsThatDifferAreAllNamed) {
  const std::map<std::string, std::string> then = {{"batch", "8"}, {"seed", "1"}, {"old", "a"}};
  EXPECT_TRUE(CheckSameSettings("dir", then, then).ok());
  EXPECT_TRUE(CheckSameSettings("dir", {{"inputs", "y: i64[4], x: f32[4,8]"}},
                                {{"inputs", "x: f32[4,8], y: i64[4]"}})
                  .ok());
  EXPECT_EQ(
      CheckSameSettings("dir", {{"inputs", "y: i64[4]"}}, {{"inputs", "y: i64[5]"}}).message(),
      "dir: the run would not go on as it began; what differs from the checkpoint:\n  inputs: got "
      "\"y: i64[5]\", expected \"y: i64[4]\"\n  hint: give the same as then, or start anew from "
      "parameters alone with `init`");
  const Status status =
      CheckSameSettings("dir", then, {{"batch", "4"}, {"seed", "1"}, {"new", "b"}});
  EXPECT_EQ(status.message(),
            "dir: the run would not go on as it began; what differs from the checkpoint:\n"
            "  batch: got \"4\", expected \"8\"\n"
            "  new: got \"b\", expected nothing\n"
            "  old: got nothing, expected \"a\"\n"
            "  hint: give the same as then, or start anew from parameters alone with `init`");
}

}  // namespace
}  // namespace zg
