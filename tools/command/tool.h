// The common frame of the programs in tools/: their start, and how they report errors.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg::command {

// Changes to the user's directory, because `bazel run` starts a program elsewhere.
Status EnterUsersDirectory();

// Prints the error, and for a wrong command line a hint that --help lists all flags. Returns the
// exit code: 2 for a wrong command line (kInvalidArgument), 1 for every other error.
int Fail(std::string_view tool, const Status& error);

// Prints the text, or the error. Returns the exit code, 0 or 1.
int Print(const StatusOr<std::string>& text);

// Runs a tool that runs other programs, in the user's directory. A closed pipe under the output
// does not end it. Returns the exit code: that of `body`, or of Fail after its error.
int RunTool(std::string_view name, const std::function<StatusOr<int>()>& body);

}  // namespace zg::command
