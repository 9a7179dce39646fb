// The command lines of tools, as tests write them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg::testing {

// The result of a tool's `parse(argc, argv, &help)` for these arguments.
template <typename Options>
StatusOr<Options> ParseArguments(StatusOr<Options> (*parse)(int, const char* const*, std::string*),
                                 std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "tool");
  std::string help;
  return parse(static_cast<int>(arguments.size()), arguments.data(), &help);
}

// A wrong command line, with this text in the error.
inline void ExpectWrongCommandLine(const Status& status, const std::string& text) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), ::testing::HasSubstr(text));
}

}  // namespace zg::testing
