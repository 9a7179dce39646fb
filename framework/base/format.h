// Numbers for people: sizes, shares, rates and durations as they appear in tables and step lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zg {

// "512 B", "1.5 KB", "640.3 MB", "2.0 GB"; 1 KB is 1000 bytes.
std::string FormatBytes(int64_t bytes);

// "1.5 GB (1512304640 bytes)", for limits that decide.
std::string FormatExactBytes(int64_t bytes);

std::string FormatPercent(double fraction);  // 0.734 -> "73.4%"

// "1 rank", "2 ranks"
std::string Counted(int64_t count, std::string_view what);

// Four significant places with k, M, G or T: "987", "12.3k", "1.25M".
std::string FormatCount(double count);

std::string FormatDuration(double seconds);  // "0:07", "12:34", "3:02:01"

// Columns padded to equal width with two spaces between them, one line per row. The first column
// is aligned to the left, the others to the right.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace zg
