// Console: standard output and the terminal, for rank 0. A full disk or a closed pipe under the
// output must not end a training run: it gives one warning, and the rest goes nowhere.
#pragma once

#include <string_view>

namespace zg {

// Writes to standard output at once.
void print_out(std::string_view text);

// Writes to standard error at once; nothing can be said about a failure.
void print_error(std::string_view text);

// The width of the terminal that standard error ends at; 0 when it is none, or one that cannot
// redraw a line. Ranks started by the launcher see the launcher's terminal.
int TerminalColumns();

// ZG_LAUNCHER_COLUMNS: how the launcher tells its ranks what TerminalColumns() is for itself.
inline constexpr char kLauncherColumns[] = "ZG_LAUNCHER_COLUMNS";

// Whether colors are welcome on standard error: a terminal, and no NO_COLOR (no-color.org).
bool WantColors();

}  // namespace zg
