#include "framework/job/console.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "framework/job/flag_names.h"

namespace zg {
namespace {

constexpr int kDefaultColumns = 80;

// Returns 0, or the error number.
int WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

void print_out(std::string_view text) {
  static bool is_broken = false;
  if (is_broken) return;
  const int error = WriteAll(STDOUT_FILENO, text);
  if (error == 0) return;
  is_broken = true;
  print_error(fmt::format("warning: standard output cannot be written ({}); going on without it\n",
                          std::strerror(error)));
}

void print_error(std::string_view text) { WriteAll(STDERR_FILENO, WithFlagNames(text)); }

int TerminalColumns() {
  if (const char* columns = std::getenv(kLauncherColumns)) return std::max(std::atoi(columns), 0);
  const char* const terminal = std::getenv("TERM");
  if (terminal == nullptr || std::strcmp(terminal, "dumb") == 0 || !isatty(STDERR_FILENO)) return 0;
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

bool WantColors() {
  const char* const no_color = std::getenv("NO_COLOR");
  return TerminalColumns() > 0 && (no_color == nullptr || *no_color == '\0');
}

}  // namespace zg
