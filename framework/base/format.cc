#include "framework/base/format.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace zg {

std::string FormatBytes(int64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  // 999.95 would be printed as 1000.0.
  while (std::abs(amount) >= (unit == 0 ? 1000 : 999.95) && unit + 1 < std::size(kUnits)) {
    amount /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string FormatExactBytes(int64_t bytes) {
  return fmt::format("{} ({} bytes)", FormatBytes(bytes), bytes);
}

std::string FormatPercent(double fraction) { return fmt::format("{:.1f}%", 100 * fraction); }

std::string Counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string FormatCount(double count) {
  if (!std::isfinite(count)) return "n/a";
  constexpr std::string_view kUnits[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (std::abs(count) >= 999.5 && unit + 1 < std::size(kUnits)) {
    count /= 1000;
    ++unit;
  }
  if (unit == 0 && count == std::floor(count)) return fmt::format("{:.0f}", count);
  const int decimals = std::abs(count) < 9.995 ? 2 : std::abs(count) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", count, decimals, kUnits[unit]);
}

std::string FormatDuration(double seconds) {
  const int64_t whole = std::llround(std::max(seconds, 0.0));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours == 0) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  return table;
}

}  // namespace zg
