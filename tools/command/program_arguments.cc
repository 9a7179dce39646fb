#include "tools/command/program_arguments.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "framework/job/launcher.h"

namespace zg::command {
namespace {

bool IsFlag(const std::string& argument, std::string_view name) {
  return argument.size() == name.size() + 2 && argument.compare(0, 2, "--") == 0 &&
         argument.compare(2, name.size(), name) == 0;
}

// `--name=`
std::string Prefix(std::string_view name) { return "--" + std::string(name) + "="; }

bool HasPrefix(const std::string& argument, const std::string& prefix) {
  return argument.compare(0, prefix.size(), prefix) == 0;
}

}  // namespace

std::optional<std::string> FlagIn(const std::vector<std::string>& arguments,
                                  std::string_view name) {
  const std::string prefix = Prefix(name);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (HasPrefix(arguments[i], prefix)) return arguments[i].substr(prefix.size());
    if (IsFlag(arguments[i], name) && i + 1 < arguments.size()) return arguments[i + 1];
  }
  return std::nullopt;
}

std::vector<std::string> WithFlag(std::vector<std::string> arguments, std::string_view name,
                                  const std::string& value) {
  const std::string prefix = Prefix(name);
  const auto found = std::find_if(arguments.begin(), arguments.end(), [&](const auto& argument) {
    return IsFlag(argument, name) || HasPrefix(argument, prefix);
  });
  if (found == arguments.end()) {
    arguments.insert(arguments.end(), {"--" + std::string(name), value});
  } else if (HasPrefix(*found, prefix)) {
    *found = prefix + value;
  } else if (found + 1 != arguments.end()) {
    *(found + 1) = value;
  }
  return arguments;
}

std::vector<std::string> WithoutFlag(std::vector<std::string> arguments, std::string_view name) {
  const std::string prefix = Prefix(name);
  for (auto argument = arguments.begin(); argument != arguments.end();) {
    if (HasPrefix(*argument, prefix)) {
      argument = arguments.erase(argument);
    } else if (IsFlag(*argument, name) && argument + 1 != arguments.end()) {
      argument = arguments.erase(argument, argument + 2);
    } else {
      ++argument;
    }
  }
  return arguments;
}

std::vector<std::string> WithoutSwitch(std::vector<std::string> arguments, std::string_view name) {
  const std::string off = "no-" + std::string(name);
  arguments.erase(std::remove_if(arguments.begin(), arguments.end(),
                                 [&](const std::string& argument) {
                                   return IsFlag(argument, name) || IsFlag(argument, off);
                                 }),
                  arguments.end());
  return arguments;
}

StatusOr<std::string> FindProgram(const std::string& name) {
  if (name.find('/') == std::string::npos) {
    if (std::optional<std::string> found = FindOnPath(name)) return *std::move(found);
    return InvalidArgument("there is no program {} on PATH; one in this directory is ./{}", name,
                           name);
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(name, error) || access(name.c_str(), X_OK) != 0) {
    return InvalidArgument("{} is not a program that can be run", name);
  }
  return name;
}

}  // namespace zg::command
