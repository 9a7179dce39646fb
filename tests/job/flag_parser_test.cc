#include "framework/job/flag_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Values {
  int count = 3;
  int64_t tokens = 1 << 20;
  double lr = 0.5;
  double momentum = 0.9;
  std::string name = "none";
  std::string mode = "fast";
  bool shuffle = true;
  std::vector<std::string> files;
};

// A parser of one flag of each kind.
class FlagParserTest : public testing::Test {
 protected:
  FlagParserTest() {
    flags_.section("Numbers");
    flags_.add_int("count", &values_.count, between(1, 10), "how many");
    flags_.add_int("tokens", &values_.tokens, {}, "any number");
    flags_.add_double("lr", &values_.lr, above(0), "learning rate");
    flags_.add_double("momentum", &values_.momentum, between(0, 1), "of SGD");
    flags_.section("Texts");
    flags_.add_string("name", &values_.name, "what it is called", "NAME");
    flags_.add_choice("mode", &values_.mode, {"fast", "slow", "exact"}, "how");
    flags_.add_bool("shuffle", &values_.shuffle, "order of the data");
    flags_.add_strings("file", &values_.files, "inputs", "FILE");
  }

  StatusOr<bool> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "program");
    return flags_.parse(static_cast<int>(arguments.size()), arguments.data());
  }

  // The message of the error that the arguments must give.
  std::string Error(std::vector<const char*> arguments) {
    const StatusOr<bool> result = Parse(std::move(arguments));
    EXPECT_FALSE(result.ok());
    if (result.ok()) return "";
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    return result.status().message();
  }

  Values values_;
  FlagParser flags_{"Counts things."};
};

TEST_F(FlagParserTest, WithoutArgumentsTheDefaultsStay) {
  EXPECT_FALSE(Parse({}).value());
  EXPECT_EQ(values_.count, 3);
  EXPECT_EQ(values_.tokens, 1 << 20);
  EXPECT_EQ(values_.lr, 0.5);
  EXPECT_EQ(values_.name, "none");
  EXPECT_TRUE(values_.shuffle);
  EXPECT_THAT(values_.files, IsEmpty());
  EXPECT_FALSE(flags_.is_given("count"));
}

TEST_F(FlagParserTest, SetsFlagsInBothSpellings) {
  EXPECT_FALSE(Parse({"--count", "10", "--tokens=-7", "--lr", "1e-3", "--momentum=0", "--name",
                      "a b", "--mode=exact", "--no-shuffle", "--file", "x", "y", "--file=z"})
                   .value());
  EXPECT_EQ(values_.count, 10);
  EXPECT_EQ(values_.tokens, -7);
  EXPECT_EQ(values_.lr, 1e-3);
  EXPECT_EQ(values_.momentum, 0);
  EXPECT_EQ(values_.name, "a b");
  EXPECT_EQ(values_.mode, "exact");
  EXPECT_FALSE(values_.shuffle);
  EXPECT_THAT(values_.files, ElementsAre("x", "y", "z"));
  EXPECT_TRUE(flags_.is_given("count"));
}

TEST_F(FlagParserTest, KeepsEveryBitOfAWholeNumber) {
  EXPECT_FALSE(Parse({"--tokens", "9223372036854775807"}).value());
  EXPECT_EQ(values_.tokens, INT64_MAX);
  EXPECT_FALSE(Parse({"--tokens", "-9223372036854775808"}).value());
  EXPECT_EQ(values_.tokens, INT64_MIN);
  EXPECT_EQ(Error({"--tokens", "9223372036854775808"}),
            "--tokens: got '9223372036854775808', expected a whole number");
}

TEST_F(FlagParserTest, RejectsWhatIsNoWholeNumberOfTheRange) {
  for (const char* bad :
       {"0", "11", "-1", "x", "1.0", "1e0", "0x1", "+1", " 1", "1 ", "nan", "4294967297"}) {
    EXPECT_EQ(Error({"--count", bad}),
              fmt::format("--count: got '{}', expected a whole number from 1 to 10", bad));
  }
  EXPECT_EQ(values_.count, 3);
}

TEST_F(FlagParserTest, RejectsWhatIsNoNumberOfTheRange) {
  for (const char* bad : {"0", "-0.1", "nan", "inf", "-inf", "1e999", "0,5", "x", "1e", "0x1p3"}) {
    EXPECT_EQ(Error({"--lr", bad}), fmt::format("--lr: got '{}', expected a number > 0", bad));
  }
  EXPECT_EQ(Error({"--momentum", "1.5"}), "--momentum: got '1.5', expected a number from 0 to 1");
}

TEST_F(FlagParserTest, RejectsAnotherChoice) {
  EXPECT_EQ(Error({"--mode", "Fast"}), "--mode: got 'Fast', expected fast, slow or exact");
}

TEST_F(FlagParserTest, RejectsAValueOfASwitch) {
  EXPECT_EQ(Error({"--shuffle=maybe"}),
            "--shuffle: got 'maybe', expected --shuffle or --no-shuffle without a value");
}

TEST_F(FlagParserTest, RejectsAMissingValue) {
  EXPECT_THAT(Error({"--count"}), HasSubstr("--count"));
  EXPECT_EQ(Error({"--count=", "--lr", "1"}), "--count: got no value, expected one after '='");
  EXPECT_EQ(Error({"--name", ""}), "--name: got an empty value");
  EXPECT_EQ(Error({"--count", "--lr", "1"}), "--count: got no value, expected N before --lr");
  EXPECT_EQ(Error({"--name", "--lr"}), "--name: got no value, expected NAME before --lr");
}

TEST_F(FlagParserTest, RejectsAFlagGivenTwice) {
  EXPECT_EQ(Error({"--count", "1", "--count", "1"}),
            "--count: got it 2 times, expected it at most once");
  EXPECT_THAT(Error({"--shuffle", "--no-shuffle"}), HasSubstr("got it 2 times"));
}

TEST_F(FlagParserTest, UnknownFlagsGetTheClosestName) {
  EXPECT_EQ(Error({"--cuont", "1"}), "unknown flag --cuont; did you mean --count?");
  EXPECT_EQ(Error({"--modes=fast"}), "unknown flag --modes; did you mean --mode?");
  EXPECT_EQ(Error({"--elephant"}), "unknown flag --elephant");
  EXPECT_EQ(Error({"-q"}), "unknown flag -q");
  EXPECT_THAT(Error({"count"}), HasSubstr("unexpected argument 'count'"));
  EXPECT_THAT(Error({"--", "count"}), HasSubstr("unknown flag --"));
}

TEST_F(FlagParserTest, HelpSetsNothing) {
  EXPECT_TRUE(Parse({"--count", "99", "--help"}).value());
  EXPECT_EQ(values_.count, 3);
}

TEST_F(FlagParserTest, HelpShowsSectionsPlaceholdersAndDefaults) {
  EXPECT_EQ(flags_.help("counter"), R"(Counts things.
Usage: counter [flags]

Numbers:
  --count N                   how many [3]
  --tokens N                  any number [1048576]
  --lr X                      learning rate [0.5]
  --momentum X                of SGD [0.9]

Texts:
  --name NAME                 what it is called [none]
  --mode fast|slow|exact      how [fast]
  --shuffle,--no-shuffle      order of the data [on]
  --file FILE ...             inputs

Other:
  -h,--help                   print this help and exit
)");
}

TEST_F(FlagParserTest, HelpShowsManyChoicesOnLinesOfTheirOwn) {
  std::string planet = "earth";
  FlagParser flags("Flies.");
  flags.add_choice("planet", &planet,
                   {"mercury", "venus", "earth", "mars", "jupiter", "saturn", "uranus", "neptune",
                    "pluto", "eris", "haumea", "makemake", "ceres"},
                   "where to");
  EXPECT_THAT(flags.help("ship"), HasSubstr(R"(
  --planet NAME               where to
                              one of mercury, venus, earth, mars, jupiter, saturn, uranus, neptune, pluto, eris,
                              haumea, makemake, ceres [earth]
)"));
}

TEST_F(FlagParserTest, GivenFlagsAsOnACommandLine) {
  EXPECT_EQ(flags_.given(), "");
  EXPECT_FALSE(Parse({"--file", "a", "b", "--no-shuffle", "--lr=0.1"}).value());
  EXPECT_EQ(flags_.given(), "--lr 0.1 --no-shuffle --file a b");
}

TEST_F(FlagParserTest, ResolvedFlagsAsText) {
  EXPECT_FALSE(Parse({"--file", "a", "b", "--lr", "0.1"}).value());
  EXPECT_EQ(FlagsAsText(flags_.resolved()),
            "count = 3\ntokens = 1048576\nlr = 0.1\nmomentum = 0.9\nname = none\nmode = fast\n"
            "shuffle = true\nfile = a b\n");
}

}  // namespace
}  // namespace zg
