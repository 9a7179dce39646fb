// The command line of a program that uses Job, seen from outside: the values of its flags, and the
// same line with a flag changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg::command {

// The value in `--name VALUE` or `--name=VALUE`, `name` without the dashes.
std::optional<std::string> FlagIn(const std::vector<std::string>& arguments, std::string_view name);

// With `--name VALUE` instead of the existing one, or at the end.
std::vector<std::string> WithFlag(std::vector<std::string> arguments, std::string_view name,
                                  const std::string& value);

std::vector<std::string> WithoutFlag(std::vector<std::string> arguments, std::string_view name);

// Without `--name` and `--no-name`, which have no value.
std::vector<std::string> WithoutSwitch(std::vector<std::string> arguments, std::string_view name);

// The program that a shell would run by this name. Error: there is none.
StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace zg::command
