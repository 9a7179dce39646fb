#include "framework/ops/rotary_frequencies.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>

namespace zg {

std::string FrequenciesText(const std::vector<double>& frequencies) {
  return fmt::format("{}", fmt::join(frequencies, ","));
}

std::optional<std::vector<double>> ParseFrequencies(const std::string& text) {
  std::vector<double> frequencies;
  const char* next = text.c_str();
  while (true) {
    char* end = nullptr;
    frequencies.push_back(std::strtod(next, &end));
    if (end == next || !std::isfinite(frequencies.back())) return std::nullopt;
    if (*end == '\0') return frequencies;
    if (*end != ',') return std::nullopt;
    next = end + 1;
  }
}

}  // namespace zg
