#include "tools/command/tool.h"

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "framework/job/console.h"

namespace zg::command {

Status EnterUsersDirectory() {
  const char* const directory = std::getenv("BUILD_WORKING_DIRECTORY");
  if (directory == nullptr || chdir(directory) == 0) return Status::Ok();
  return FailedPrecondition("{} cannot be entered", directory);
}

int Fail(std::string_view tool, const Status& error) {
  const bool is_users = error.code() == StatusCode::kInvalidArgument;
  const std::string hint = is_users ? fmt::format("hint: {} --help lists all flags\n", tool) : "";
  print_error(fmt::format("error: {}\n{}", error.message(), hint));
  return is_users ? 2 : 1;
}

int Print(const StatusOr<std::string>& text) {
  if (text.ok()) {
    print_out(*text);
    return 0;
  }
  print_error(fmt::format("error: {}\n", text.status().message()));
  return 1;
}

int RunTool(std::string_view name, const std::function<StatusOr<int>()>& body) {
  if (const Status status = EnterUsersDirectory(); !status.ok()) return Fail(name, status);
  std::signal(SIGPIPE, SIG_IGN);
  const StatusOr<int> code = body();
  return code.ok() ? *code : Fail(name, code.status());
}

}  // namespace zg::command
