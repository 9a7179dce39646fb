// Console: standard output and the terminal, for rank 0. Output that cannot be written (a full
// disk, a closed pipe) gives one warning and does not end a training run.
#pragma once

#include <string_view>

namespace zg {

// Writes to standard output at once.
void print_out(std::string_view text);

// Writes to standard error at once, with quoted settings shown as flags (flag_names.h). Ignores
// failures.
void print_error(std::string_view text);

// The width of the terminal on standard error; 0 without a terminal, or with one that cannot redraw
// a line. Ranks started by the launcher use the launcher's terminal.
int TerminalColumns();

// ZG_LAUNCHER_COLUMNS: the variable with which the launcher passes its own TerminalColumns() to its
// ranks.
inline constexpr char kLauncherColumns[] = "ZG_LAUNCHER_COLUMNS";

// Whether to use colors on standard error: on a terminal, unless NO_COLOR is set (no-color.org).
bool WantColors();

}  // namespace zg
