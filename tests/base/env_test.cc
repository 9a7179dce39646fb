#include "framework/base/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace zg {
namespace {

using ::testing::HasSubstr;

class EnvTest : public testing::Test {
 protected:
  ~EnvTest() override {
    unsetenv("ZG_COLLECTIVE_TIMEOUT_S");
    unsetenv("ZG_COMM");
    unsetenv("ZG_COM");
    unsetenv("ZG_INSTRUCTION_SET");
  }
};

TEST_F(EnvTest, DefaultsWhenNothingIsSet) {
  unsetenv("ZG_COLLECTIVE_TIMEOUT_S");
  unsetenv("ZG_COMM");
  EXPECT_EQ(CollectiveTimeoutSeconds().value(), 300);
  EXPECT_EQ(CommTransportFromEnvironment().value(), CommTransport::kAuto);
}

TEST_F(EnvTest, ReadsTheTimeout) {
  setenv("ZG_COLLECTIVE_TIMEOUT_S", "2.5", 1);
  EXPECT_EQ(CollectiveTimeoutSeconds().value(), 2.5);
}

TEST_F(EnvTest, RejectsATimeoutThatIsNoPositiveNumber) {
  for (const char* bad : {"", "0", "-1", "10s", " 10", "nan", "inf", "1e999"}) {
    setenv("ZG_COLLECTIVE_TIMEOUT_S", bad, 1);
    const auto timeout = CollectiveTimeoutSeconds();
    ASSERT_FALSE(timeout.ok()) << bad;
    EXPECT_THAT(timeout.status().message(), HasSubstr("ZG_COLLECTIVE_TIMEOUT_S is '"));
    EXPECT_THAT(timeout.status().message(), HasSubstr("expected a number of seconds > 0"));
  }
}

TEST_F(EnvTest, ReadsTheTransport) {
  setenv("ZG_COMM", "messages", 1);
  EXPECT_EQ(CommTransportFromEnvironment().value(), CommTransport::kMessages);
  setenv("ZG_COMM", "shared", 1);
  EXPECT_EQ(CommTransportFromEnvironment().value(), CommTransport::kShared);
  setenv("ZG_COMM", "Messages", 1);
  EXPECT_EQ(CommTransportFromEnvironment().status().message(),
            "environment variable ZG_COMM is 'Messages'; expected auto, shared or messages");
}

TEST_F(EnvTest, ReadsTheInstructionSet) {
  EXPECT_EQ(InstructionSetFromEnvironment().value(), InstructionSet::kAmx);
  setenv("ZG_INSTRUCTION_SET", "avx512_bf16", 1);
  EXPECT_EQ(InstructionSetFromEnvironment().value(), InstructionSet::kAvx512Bf16);
  setenv("ZG_INSTRUCTION_SET", "baseline", 1);
  EXPECT_EQ(InstructionSetFromEnvironment().value(), InstructionSet::kBaseline);
  EXPECT_TRUE(CheckEnvironment().ok());
  setenv("ZG_INSTRUCTION_SET", "sse", 1);
  EXPECT_EQ(InstructionSetFromEnvironment().status().message(),
            "environment variable ZG_INSTRUCTION_SET is 'sse'; expected baseline, avx2, avx512, "
            "avx512_bf16 or amx");
  EXPECT_EQ(CheckEnvironment().message(), InstructionSetFromEnvironment().status().message());
}

TEST_F(EnvTest, KnowsVariablesOfTests) {
  setenv("ZG_TEST_SHARED_GPU", "1", 1);
  EXPECT_TRUE(CheckEnvironment().ok());
  unsetenv("ZG_TEST_SHARED_GPU");
}

TEST_F(EnvTest, AMisspeltVariableIsAnError) {
  EXPECT_TRUE(CheckEnvironment().ok());
  setenv("ZG_COM", "messages", 1);
  EXPECT_THAT(CheckEnvironment().message(), HasSubstr("ZG_COM is not known; there are ZG_COLL"));
}

}  // namespace
}  // namespace zg
